package guards

import "slices"

// Set is a persistent set of guards, in the order in which they were added. The zero value is empty. Add and
// Union cost O(1) and do not change their operands. Duplicates are removed when the set is first read, and
// the result is cached.
type Set struct{ root *setNode }

// setNode is a leaf (with guards) or the union of two sets. Nodes are shared between sets and never change,
// except for flat and index, which cache the result of reading. The guards that flat points to never change.
type setNode struct {
	guards      []Guard
	left, right *setNode
	flat        []*Guard
	index       map[GuardID]int
}

// NewSet returns the set of the given guards.
func NewSet(gs ...Guard) Set { return Set{}.Add(gs...) }

// Add returns the set with gs added. A second TENSOR_MATCH for a place is merged with the first.
func (s Set) Add(gs ...Guard) Set {
	if len(gs) == 0 {
		return s
	}
	return s.Own(slices.Clone(gs))
}

// Own does what Add does. The caller must not change gs afterwards.
func (s Set) Own(gs []Guard) Set {
	return s.Union(Set{&setNode{guards: gs}})
}

// Union returns the union of s and the others.
func (s Set) Union(others ...Set) Set {
	for _, o := range others {
		switch {
		case o.root == nil || o.root == s.root:
		case s.root == nil:
			s = o
		default:
			s = Set{&setNode{left: s.root, right: o.root}}
		}
	}
	return s
}

// Collector gathers the guards of a translation. There are thousands, and most of them are added many times.
// Add finds a repeated guard by its identity, without an allocation. The zero value is empty.
type Collector struct {
	flat  []*Guard
	index map[GuardID]int
	// repeated TENSOR_MATCH guards. Set merges each into the first guard of its place, and not Add, since operands may
	// still change.
	tensors []*Guard
}

// Add adds gs, as Set.Add does. The caller must not change gs afterwards.
func (c *Collector) Add(gs ...Guard) {
	if c.index == nil {
		c.index = map[GuardID]int{}
	}
	for i := range gs {
		g := &gs[i]
		id := g.id()
		if _, found := c.index[id]; !found {
			c.index[id] = len(c.flat)
			c.flat = append(c.flat, g)
		} else if g.CreateFn == CreateTensorMatch {
			c.tensors = append(c.tensors, g)
		}
	}
}

// Set returns the set of the guards added so far; it is valid until the next Add.
func (c *Collector) Set() Set {
	if c.index == nil {
		return Set{}
	}
	flat := c.flat
	if len(c.tensors) > 0 {
		flat = slices.Clone(flat)
		for i := range c.tensors {
			flat = addGuard(flat, c.index, c.tensors[i])
		}
	}
	return Set{&setNode{flat: flat, index: c.index}}
}

// Said returns the distinct guards so far, in the order in which they were added. It does not merge
// TENSOR_MATCH guards. The caller must not change the slice or the guards.
func (c *Collector) Said() []*Guard { return c.flat }

// Len returns the number of distinct guards.
func (s Set) Len() int { return len(s.Guards()) }

// Each calls f for every guard, in the order in which they were added.
func (s Set) Each(f func(Guard)) {
	for _, g := range s.Guards() {
		f(*g)
	}
}

// Contains reports whether the set has a guard with the same identity.
func (s Set) Contains(g Guard) bool {
	if s.root == nil {
		return false
	}
	s.Guards()
	_, ok := s.root.index[g.ID()]
	return ok
}

// Guards returns the distinct guards in the order in which they were added. The caller must not change the
// slice or the guards.
func (s Set) Guards() []*Guard {
	if s.root == nil {
		return nil
	}
	if s.root.index == nil {
		s.root.flatten()
	}
	return s.root.flat
}

// flatten reads the tree with an explicit stack, since the tree of a set to which guards were added one by one
// is as deep as the set is long.
func (n *setNode) flatten() {
	index := map[GuardID]int{}
	var flat []*Guard
	seen := map[*setNode]bool{}
	stack := []*setNode{n}
	for len(stack) > 0 {
		top := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if top.guards == nil { // leaves are not marked as seen: a repeated guard is found by its ID
			if seen[top] {
				continue
			}
			seen[top] = true
		}
		switch {
		case top.guards != nil:
			for i := range top.guards {
				flat = addGuard(flat, index, &top.guards[i])
			}
		case top.index != nil:
			for _, g := range top.flat {
				flat = addGuard(flat, index, g)
			}
		default:
			stack = append(stack, top.right, top.left)
		}
	}
	n.flat, n.index = flat, index
}

func addGuard(flat []*Guard, index map[GuardID]int, g *Guard) []*Guard {
	id := g.id()
	at, found := index[id]
	if !found {
		index[id] = len(flat)
		return append(flat, g)
	}
	if g.CreateFn == CreateTensorMatch && g.Args.Tensor != nil {
		merged := *flat[at]
		merged.Args.Tensor = merged.Args.Tensor.merge(g.Args.Tensor)
		flat[at] = &merged
	}
	return flat
}

// merge returns operands that compare every field that t or o compares, with the example of t. It changes neither t nor
// o.
func (t *TensorArgs) merge(o *TensorArgs) *TensorArgs {
	if t == nil {
		return o
	}
	return &TensorArgs{
		Example:       t.Example,
		Fields:        t.Fields | o.Fields,
		StaticSizes:   t.StaticSizes | o.StaticSizes,
		StaticStrides: t.StaticStrides | o.StaticStrides,
	}
}
