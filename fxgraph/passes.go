package fxgraph

import "fmt"

// Lint checks the properties that every user of a graph relies on: positions, unique identifiers as names, operands
// that belong to this graph and come before their user, exact user counts, valid operands for each kind, and one
// output at the end. Errors contain the node's name.
func (g *Graph) Lint() error {
	names := map[string]bool{}
	users := map[*Node]map[*Node]int{}
	for i, n := range g.nodes {
		if err := g.lintNode(i, n); err != nil {
			return fmt.Errorf("fxgraph: node %d %%%s: %w", i, n.Name, err)
		}
		if names[n.Name] {
			return fmt.Errorf("fxgraph: node %d: the name %s is taken", i, n.Name)
		}
		names[n.Name] = true
		n.EachInput(func(in *Node) {
			if users[in] == nil {
				users[in] = map[*Node]int{}
			}
			users[in][n]++
		})
	}
	for _, n := range g.nodes {
		if err := sameUsers(n.users, users[n]); err != nil {
			return fmt.Errorf("fxgraph: %%%s: %w", n.Name, err)
		}
	}
	return nil
}

func (g *Graph) lintNode(i int, n *Node) error {
	if n.Index != i {
		return fmt.Errorf("index %d", n.Index)
	}
	if !isIdentifier(n.Name) {
		return fmt.Errorf("its name is no identifier")
	}
	if err := lintShape(n, i == len(g.nodes)-1); err != nil {
		return err
	}
	var err error
	n.EachInput(func(in *Node) {
		switch {
		case in == nil:
			err = fmt.Errorf("an operand is a nil node")
		case in.Index < 0 || in.Index >= len(g.nodes) || g.nodes[in.Index] != in:
			err = fmt.Errorf("operand %%%s is not in the graph", in.Name)
		case in.Index >= i:
			err = fmt.Errorf("operand %%%s comes later", in.Name)
		case in.Op == Output:
			err = fmt.Errorf("the output is an operand")
		}
	})
	if err != nil {
		return err
	}
	for _, a := range n.Args {
		if err := lintArg(a); err != nil {
			return err
		}
	}
	seen := map[string]bool{}
	for _, k := range n.Kwargs {
		if seen[k.Name] {
			return fmt.Errorf("keyword %s twice", k.Name)
		}
		seen[k.Name] = true
		if err := lintArg(k.Value); err != nil {
			return err
		}
	}
	return nil
}

func lintShape(n *Node, last bool) error {
	switch n.Op {
	case Placeholder, GetAttr:
		if len(n.Args)+len(n.Kwargs) > 0 {
			return fmt.Errorf("a %s takes no operands", n.Op)
		}
	case CallMethod:
		if len(n.Args) == 0 {
			return fmt.Errorf("a method call without self")
		}
	case CallFunction, CallModule:
	case Output:
		if !last {
			return fmt.Errorf("the output is not the last node")
		}
		if len(n.Args) != 1 || len(n.Kwargs) > 0 {
			return fmt.Errorf("an output has one operand")
		}
	default:
		return fmt.Errorf("unknown kind %d", n.Op)
	}
	if n.Target.Text == "" {
		return fmt.Errorf("no target")
	}
	return nil
}

func lintArg(a Arg) error {
	each := func(items []Arg) error {
		for _, i := range items {
			if err := lintArg(i); err != nil {
				return err
			}
		}
		return nil
	}
	switch x := a.(type) {
	case *Node, Lit:
		return nil
	case List:
		return each(x.Items)
	case Tuple:
		return each(x.Items)
	case Slice:
		return each([]Arg{x.Start, x.Stop, x.Step})
	case Dict:
		if len(x.Keys) != len(x.Values) {
			return fmt.Errorf("a dict of %d keys and %d values", len(x.Keys), len(x.Values))
		}
		for _, k := range x.Keys {
			var err error
			EachNode(k, func(n *Node) { err = fmt.Errorf("%%%s in a dict key", n.Name) })
			if err != nil {
				return err
			}
		}
		if err := each(x.Keys); err != nil {
			return err
		}
		return each(x.Values)
	}
	return fmt.Errorf("operand of type %T", a)
}

func sameUsers(have, want map[*Node]int) error {
	if len(have) != len(want) {
		return fmt.Errorf("%d users recorded, %d found", len(have), len(want))
	}
	for n, k := range want {
		if have[n] != k {
			return fmt.Errorf("%%%s uses it %d times, %d recorded", n.Name, k, have[n])
		}
	}
	return nil
}

// EliminateDeadCode erases nodes without users. It starts at the end, so that nodes used only by erased nodes are
// erased also. It keeps inputs, the output, nodes marked Inplace, and nodes for which impure returns true: random
// draws, prints, unknown callables. Only the caller can recognize these. It returns the number of erased nodes. Their
// names stay in use.
func (g *Graph) EliminateDeadCode(impure func(*Node) bool) int {
	erased := 0
	for i := len(g.nodes) - 1; i >= 0; i-- {
		n := g.nodes[i]
		if n.Op == Placeholder || n.Op == Output || len(n.users) > 0 || n.Inplace || n.RunsOnce() || impure(n) {
			continue
		}
		g.SetArgs(n, nil, nil)
		n.Index = -1
		erased++
	}
	if erased > 0 {
		g.renumber()
	}
	return erased
}

// Erase removes a node. It fails if the node has users or is not in the graph.
func (g *Graph) Erase(n *Node) error {
	if n.Index < 0 || n.Index >= len(g.nodes) || g.nodes[n.Index] != n {
		return fmt.Errorf("fxgraph: %%%s is not in the graph", n.Name)
	}
	if len(n.users) > 0 {
		return fmt.Errorf("fxgraph: %%%s has %d users", n.Name, len(n.users))
	}
	g.SetArgs(n, nil, nil)
	n.Index = -1
	g.renumber()
	return nil
}

// renumber drops the nodes whose Index is -1 and numbers the others.
func (g *Graph) renumber() {
	kept := g.nodes[:0]
	for _, n := range g.nodes {
		if n.Index >= 0 {
			n.Index = len(kept)
			kept = append(kept, n)
		}
	}
	clear(g.nodes[len(kept):])
	g.nodes = kept
}

// PlaceholdersFirst moves the inputs to the front. Inputs keep their order, and so do the other nodes. During
// translation an input is added at its first use, but torch.fx.Graph and its signature expect the inputs first.
func (g *Graph) PlaceholdersFirst() {
	sorted := make([]*Node, 0, len(g.nodes))
	for _, n := range g.nodes {
		if n.Op == Placeholder {
			sorted = append(sorted, n)
		}
	}
	for _, n := range g.nodes {
		if n.Op != Placeholder {
			sorted = append(sorted, n)
		}
	}
	g.nodes = sorted
	for i, n := range g.nodes {
		n.Index = i
	}
}

// ReplaceAllUsesWith makes every user of old use repl instead, except repl itself. It returns the number of users that
// it changed.
func (g *Graph) ReplaceAllUsesWith(old, repl *Node) int {
	changed := 0
	for _, user := range g.nodes {
		if user == repl || !old.UsedBy(user) {
			continue
		}
		args, kwargs := make([]Arg, len(user.Args)), make([]Kwarg, len(user.Kwargs))
		for i, a := range user.Args {
			args[i] = replace(a, old, repl)
		}
		for i, k := range user.Kwargs {
			kwargs[i] = Kwarg{k.Name, replace(k.Value, old, repl)}
		}
		g.SetArgs(user, args, kwargs)
		changed++
	}
	return changed
}

func replace(a Arg, old, repl *Node) Arg {
	return MapNodes(a, func(n *Node) *Node {
		if n == old {
			return repl
		}
		return n
	})
}

// Copy adds a node like n. Each node among n's operands is replaced by of(node).
func (g *Graph) Copy(n *Node, of func(*Node) *Node) *Node {
	args := make([]Arg, len(n.Args))
	for i, a := range n.Args {
		args[i] = MapNodes(a, of)
	}
	var kwargs []Kwarg
	for _, k := range n.Kwargs {
		kwargs = append(kwargs, Kwarg{k.Name, MapNodes(k.Value, of)})
	}
	c := g.add(n.Op, n.Target, args, kwargs)
	c.Inplace, c.State, c.Item, c.Several = n.Inplace, n.State, n.Item, n.Several
	c.Foreign, c.Dispatched = n.Foreign, n.Dispatched
	return c
}

// MapNodes returns a copy of an operand. Each node n in it is replaced by f(n).
func MapNodes(a Arg, f func(*Node) *Node) Arg {
	each := func(items []Arg) []Arg {
		out := make([]Arg, len(items))
		for i, it := range items {
			out[i] = MapNodes(it, f)
		}
		return out
	}
	switch x := a.(type) {
	case *Node:
		return f(x)
	case List:
		return List{each(x.Items)}
	case Tuple:
		return Tuple{each(x.Items), x.Size}
	case Dict:
		return Dict{x.Keys, each(x.Values)}
	case Slice:
		return Slice{MapNodes(x.Start, f), MapNodes(x.Stop, f), MapNodes(x.Step, f)}
	}
	return a
}
