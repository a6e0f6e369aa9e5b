// Package fxgraph is the graph of one translated frame: FX's nodes as plain data. It holds no Python objects: an
// operand or target that is a Python object is represented by its index in the translation's constant pool and its
// printed form.
//
// The text form of a graph is FX's:
//
//	graph():
//	    %x : [num_users=1] = placeholder[target=x]
//	    %add : [num_users=1] = call_function[target=operator.add](args = (%x, 1), kwargs = {})
//	    return (add,)
//
// (print.go; constants are printed by repr, where FX uses str). Dump adds pool indices, user stacks and flags.
// Parse reads both forms back (parse.go).
//
// The package never runs an operation, inspects a value or calls Python.
package fxgraph

import (
	"fmt"
	"slices"
)

// OpKind is one of FX's node kinds.
type OpKind uint8

// The kinds in FX's order.
const (
	Placeholder OpKind = iota
	GetAttr
	CallFunction
	CallMethod
	CallModule
	Output
)

var opNames = [...]string{"placeholder", "get_attr", "call_function", "call_method", "call_module", "output"}

// String returns FX's name of the kind.
func (k OpKind) String() string {
	if int(k) < len(opNames) {
		return opNames[k]
	}
	return fmt.Sprintf("op(%d)", uint8(k))
}

// NoPool is the pool index of a target or literal of which only the text is known.
const NoPool = -1

// Target is the callable or value that a node calls or reads. Text is its printed form: a qualified name
// ("torch.relu", "operator.add") for CallFunction, a method's name, the dotted path of a module or attribute, or the
// name of an input. For CallFunction, Pool is the callable's index in the constant pool; for other kinds it is NoPool.
type Target struct {
	Pool int
	Text string
}

// Arg is an operand: *Node, Lit, List, Tuple, Dict or Slice.
type Arg interface{}

// Lit is a constant. Pool is its index in the constant pool, and Text is its repr.
type Lit struct {
	Pool int
	Text string
}

// List is a Python list of operands.
type List struct{ Items []Arg }

// Tuple is a Python tuple of operands. Size marks a tuple that was a torch.Size; few operations distinguish the two.
type Tuple struct {
	Items []Arg
	Size  bool
}

// Dict is a Python dict of operands, in insertion order. Values[i] is the value of Keys[i]. Keys contain no nodes.
type Dict struct{ Keys, Values []Arg }

// Slice is a Python slice. Its fields are never nil: a missing bound is a Lit for None.
type Slice struct{ Start, Stop, Step Arg }

// Kwarg is a keyword operand.
type Kwarg struct {
	Name  string
	Value Arg
}

// Frame is one user frame of a node's stack.
type Frame struct {
	Name string // the function's name
	File string
	Line int // from 1; 0 when unknown
	Col  int // from 0, set for Python operations only; not in the text form
}

// Node is one operation. Graph's methods create nodes and update users and Index. Only SetArgs changes a node's
// operands.
type Node struct {
	Op     OpKind
	Name   string // unique in the graph, a Python identifier
	Target Target
	Args   []Arg
	Kwargs []Kwarg
	Stack  []Frame // user frames, innermost first
	// Inplace marks a call that may change one of its operands. Such a node is never removed as dead code and never
	// moved. The code that adds the node sets Inplace.
	Inplace bool
	// State marks a call that switches one of torch's modes (grad mode, autocast). Such a node is never removed and
	// changes no operand.
	State bool
	// Opaque marks a call of a user's Python function that is one operation. It may draw random numbers.
	Opaque bool
	// Foreign marks an operation that may communicate with other ranks, that calls numpy, or whose operands or results
	// may be tensors of a class that dispatches operators in Python. Such a node runs exactly once, and its metadata
	// are unknown.
	Foreign bool
	// Dispatched marks an operation with an operand of a class that dispatches operators in Python. Such a node runs
	// exactly once. Its result is a plain tensor, as a check after it finds.
	Dispatched bool
	// Item marks a node that only selects one of several results of an operation.
	Item bool
	// Expression marks an input that is an int, and whose target is the expression of its value, such as "2*s0".
	Expression bool
	// Several marks an output that is a sequence: a tuple, a list or a named tuple returned by one operation.
	Several bool
	// Index is the node's position in Graph.Nodes(), or -1 after the node is erased.
	Index int
	users map[*Node]int // maps a user to the number of its operands that are this node
}

// RunsOnce reports whether the operation must run exactly once, where eager mode runs it.
func (n *Node) RunsOnce() bool { return n.Foreign || n.Dispatched }

// NumUsers returns the number of distinct nodes that use this one.
func (n *Node) NumUsers() int { return len(n.users) }

// UsedBy reports whether user has this node among its operands.
func (n *Node) UsedBy(user *Node) bool { return n.users[user] > 0 }

// HasUser reports whether a node for which is is true has the node as an operand.
func (n *Node) HasUser(is func(user *Node) bool) bool {
	for user := range n.users {
		if is(user) {
			return true
		}
	}
	return false
}

// String returns the node's name.
func (n *Node) String() string { return n.Name }

// Graph is a list of nodes in execution order. The zero value is not usable; call NewGraph.
type Graph struct {
	nodes   []*Node
	names   namespace
	targets map[string]bool // those of the inputs
}

// NewGraph returns an empty graph.
func NewGraph() *Graph { return &Graph{names: newNamespace(), targets: map[string]bool{}} }

// Nodes returns the nodes in execution order: Nodes()[n.Index] is n. The slice belongs to the graph and must not be
// changed.
func (g *Graph) Nodes() []*Node { return g.nodes }

// Placeholder adds a graph input. The input's own name is derived from name. Its target is name, or its own name if
// another input has this target: targets are the parameters' names in the code that torch.fx writes. An input may be
// added when it is first used; PlaceholdersFirst then moves the inputs to the front.
func (g *Graph) Placeholder(name string) *Node {
	n := g.add(Placeholder, Target{NoPool, name}, nil, nil)
	if g.targets[name] {
		n.Target.Text = n.Name
	}
	g.targets[n.Target.Text] = true
	return n
}

// GetAttr adds a node that reads an attribute of the graph module by its dotted path.
func (g *Graph) GetAttr(path string) *Node {
	return g.add(GetAttr, Target{NoPool, path}, nil, nil)
}

// CallFunction adds a call of a callable from the constant pool. The graph keeps args and kwargs.
func (g *Graph) CallFunction(target Target, args []Arg, kwargs []Kwarg) *Node {
	return g.add(CallFunction, target, args, kwargs)
}

// CallMethod adds the call args[0].name(*args[1:], **kwargs).
func (g *Graph) CallMethod(name string, args []Arg, kwargs []Kwarg) *Node {
	return g.add(CallMethod, Target{NoPool, name}, args, kwargs)
}

// CallModule adds a call of the submodule at a dotted path.
func (g *Graph) CallModule(path string, args []Arg, kwargs []Kwarg) *Node {
	return g.add(CallModule, Target{NoPool, path}, args, kwargs)
}

// Output ends the graph with its result. Backends always get a tuple as the result, since aot_eager accepts nothing
// else.
func (g *Graph) Output(value Arg) *Node {
	return g.add(Output, Target{NoPool, "output"}, []Arg{value}, nil)
}

// OutputNode returns the output node, or nil if there is none yet.
func (g *Graph) OutputNode() *Node {
	if k := len(g.nodes); k > 0 && g.nodes[k-1].Op == Output {
		return g.nodes[k-1]
	}
	return nil
}

func (g *Graph) add(op OpKind, target Target, args []Arg, kwargs []Kwarg) *Node {
	return g.insert(&Node{Op: op, Name: g.names.create(targetName(op, target)), Target: target}, args, kwargs)
}

func (g *Graph) insert(n *Node, args []Arg, kwargs []Kwarg) *Node {
	n.Index = len(g.nodes)
	g.nodes = append(g.nodes, n)
	g.SetArgs(n, args, kwargs)
	return n
}

// StartWith moves a node without operands to the front of the graph. PlaceholdersFirst later moves the inputs before
// it.
func (g *Graph) StartWith(n *Node) {
	g.nodes = slices.Insert(slices.Delete(g.nodes, n.Index, n.Index+1), 0, n)
	g.renumber()
}

// SetArgs replaces a node's operands and updates the users of its old and new operands.
func (g *Graph) SetArgs(n *Node, args []Arg, kwargs []Kwarg) {
	n.EachInput(func(in *Node) {
		if in.users[n]--; in.users[n] == 0 {
			delete(in.users, n)
		}
	})
	n.Args, n.Kwargs = args, kwargs
	n.EachInput(func(in *Node) {
		if in.users == nil {
			in.users = map[*Node]int{}
		}
		in.users[n]++
	})
}

// EachInput calls f for every operand that is a node. If a node occurs several times, f is called for each occurrence.
func (n *Node) EachInput(f func(*Node)) {
	for _, a := range n.Args {
		EachNode(a, f)
	}
	for _, k := range n.Kwargs {
		EachNode(k.Value, f)
	}
}

// EachNode calls f for every node inside an operand, in printed order.
func EachNode(a Arg, f func(*Node)) {
	switch x := a.(type) {
	case *Node:
		f(x)
	case List:
		for _, i := range x.Items {
			EachNode(i, f)
		}
	case Tuple:
		for _, i := range x.Items {
			EachNode(i, f)
		}
	case Dict:
		for i := range x.Values {
			EachNode(x.Keys[i], f)
			EachNode(x.Values[i], f)
		}
	case Slice:
		EachNode(x.Start, f)
		EachNode(x.Stop, f)
		EachNode(x.Step, f)
	}
}
