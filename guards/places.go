package guards

import "slices"

// Places finds the guards on a place, the reads of that place (see Options.Reads), and the guards and reads of
// all places that are read from it. The guards and the reads are two logs that only grow. The first query reads
// the whole logs; each later query reads only the new entries.
type Places struct {
	at            map[string]int32
	all           []place
	said          []saying
	guards, reads int // number of entries of each log that have been read
}

// place is a node of the tree of places. Each number in it is an index plus one; 0 means none.
type place struct {
	below, beside int32 // below: the first place read from this one; beside: the next place read from the same base
	guards, reads int32 // the last guard and the last read on this place, as numbers in Places.said
}

type saying struct{ entry, before int32 }

// Below lists the guards on src and on places read from src, and the reads of such places, each in the order of its
// log. A guard on several places is included if one of them is src or is read from src.
func (p *Places) Below(src Source, gs []*Guard, reads []Source) (guards []*Guard, read []Source) {
	if p.at == nil {
		p.at = make(map[string]int32, len(gs))
	}
	for ; p.guards < len(gs); p.guards++ {
		g := gs[p.guards]
		for _, s := range [2]Source{g.Origin, g.Args.Other} {
			p.about(s)
		}
		for s := range g.Args.Cond.sources {
			p.about(s)
		}
	}
	for ; p.reads < len(reads); p.reads++ {
		at := p.place(reads[p.reads])
		p.all[at].reads = p.say(p.reads, p.all[at].reads)
		keys(reads[p.reads], func(key Source) {
			at := p.place(key)
			p.all[at].reads = p.say(p.reads, p.all[at].reads)
		})
	}
	var of, seen []int
	for stack := []int32{p.place(src)}; len(stack) > 0; {
		top := &p.all[stack[len(stack)-1]]
		stack = stack[:len(stack)-1]
		for n := top.below; n != 0; n = p.all[n-1].beside {
			stack = append(stack, n-1)
		}
		of, seen = p.entries(of, top.guards), p.entries(seen, top.reads)
	}
	slices.Sort(of)
	slices.Sort(seen)
	for _, i := range slices.Compact(of) {
		guards = append(guards, gs[i])
	}
	for _, i := range slices.Compact(seen) {
		read = append(read, reads[i])
	}
	return guards, read
}

// about records that the next guard of the log is about the place.
func (p *Places) about(s Source) {
	if s != nil {
		at := p.place(s)
		p.all[at].guards = p.say(p.guards, p.all[at].guards)
		keys(s, p.about)
	}
}

// keys calls f for the places of the keys with which s is read: self, for state[self].x.
func keys(s Source, f func(key Source)) {
	for ; s != nil; s = s.Base() {
		if item, ok := s.(*ObjectKeySource); ok {
			f(item.Key)
		}
	}
}

func (p *Places) say(entry int, before int32) int32 {
	p.said = append(p.said, saying{int32(entry), before})
	return int32(len(p.said))
}

func (p *Places) entries(out []int, last int32) []int {
	for ; last != 0; last = p.said[last-1].before {
		out = append(out, int(p.said[last-1].entry))
	}
	return out
}

func (p *Places) place(s Source) int32 {
	if at, ok := p.at[s.Name()]; ok {
		return at
	}
	base := s.Base()
	for base != nil && base.Name() == s.Name() {
		base = base.Base()
	}
	under := int32(-1)
	if base != nil {
		under = p.place(base)
	}
	at := int32(len(p.all))
	p.all = append(p.all, place{})
	p.at[s.Name()] = at
	if under >= 0 {
		p.all[at].beside = p.all[under].below
		p.all[under].below = at + 1
	}
	return at
}
