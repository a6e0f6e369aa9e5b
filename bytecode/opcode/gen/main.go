// Command gen writes the tables of package opcode from JSON dumps of CPython's own opcode metadata.
//
// Usage: gen DIR, where DIR holds pyXYZ.json files made by dump.py. It writes DIR/op_gen.go (the enumeration of the
// opcodes of all versions, and the operator tables) and one DIR/pyXYZ_gen.go for each dump. A new Python version
// needs one more dump.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/format"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// dump has the fields of a pyXYZ.json from which the tables are generated; dump.py describes each field.
type dump struct {
	Version        [2]int              `json:"version"`
	Magic          string              `json:"magic"`
	HaveArgument   int                 `json:"have_argument"`
	Opmap          map[string]int      `json:"opmap"`
	Caches         map[string]int      `json:"caches"`
	ArgKinds       map[string][]string `json:"arg_kinds"`
	NbOps          [][2]string         `json:"nb_ops"`
	CmpOp          []string            `json:"cmp_op"`
	CompareArgs    []int               `json:"compare_args"`
	CompareBool    int                 `json:"compare_bool"`
	NullAbove      bool                `json:"null_above"`
	LoopEnd        []string            `json:"loop_end"`
	LeastStack     int                 `json:"least_stack"`
	ClearsBackward bool                `json:"clears_backward"`
	MergesLines    bool                `json:"merges_lines"`
	LineGaps       bool                `json:"line_gaps"`
	HandlerBefore  bool                `json:"handler_before"`
	Intrinsics1    []string            `json:"intrinsics_1"`
	Intrinsics2    []string            `json:"intrinsics_2"`
	CommonConsts   []string            `json:"common_constants"`
	SpecialMethods []string            `json:"special_methods"`
	CodeFlags      map[string]int      `json:"code_flags"`
	FastLocalKinds map[string]int      `json:"fast_local_kinds"`

	base string // file name without .json
}

// argKinds maps each kind of argument in dump.py to the constant of package opcode.
var argKinds = map[string]string{
	"const": "ArgConst", "name": "ArgName", "local": "ArgLocal", "free": "ArgFree",
	"compare": "ArgCompare", "jump_relative": "ArgJump",
}

// compareNames maps the symbol of each comparison to its name in CMP_*.
var compareNames = map[string]string{
	"<": "CMP_LT", "<=": "CMP_LE", "==": "CMP_EQ", "!=": "CMP_NE", ">": "CMP_GT", ">=": "CMP_GE",
}

// intrinsicForms maps the intrinsics of 3.12 that were opcodes of 3.11 to those opcodes. The others keep their names.
var intrinsicForms = map[string]string{
	"INTRINSIC_ASYNC_GEN_WRAP":    "ASYNC_GEN_WRAP",
	"INTRINSIC_UNARY_POSITIVE":    "UNARY_POSITIVE",
	"INTRINSIC_LIST_TO_TUPLE":     "LIST_TO_TUPLE",
	"INTRINSIC_PREP_RERAISE_STAR": "PREP_RERAISE_STAR",
}

// lowBits returns the opcodes of the dialect among which the lowest `bits` bits of a real opcode's argument choose, or
// nil if they choose nothing. An empty name stands for a value that does not exist.
func (d *dump) lowBits(name string) (ops []string, bits int) {
	switch name {
	case "CALL_INTRINSIC_1":
		return intrinsicOps(d.Intrinsics1), 8
	case "CALL_INTRINSIC_2":
		return intrinsicOps(d.Intrinsics2), 8
	case "LOAD_ATTR":
		if _, separate := d.Opmap["LOAD_METHOD"]; !separate {
			return []string{"LOAD_ATTR", "LOAD_METHOD"}, 1
		}
	}
	return nil, 0
}

func intrinsicOps(names []string) []string {
	ops := make([]string, len(names))
	for i, name := range names {
		form, known := intrinsicForms[name]
		switch {
		case known:
			ops[i] = form
		case !strings.HasSuffix(name, "_INVALID"):
			ops[i] = name
		}
	}
	return ops
}

// pairs maps the opcodes that are two instructions in one to the two. Each takes four bits of the argument.
var pairs = map[string][2]string{
	"LOAD_FAST_LOAD_FAST":   {"LOAD_FAST", "LOAD_FAST"},
	"STORE_FAST_LOAD_FAST":  {"STORE_FAST", "LOAD_FAST"},
	"STORE_FAST_STORE_FAST": {"STORE_FAST", "STORE_FAST"},

	"LOAD_FAST_BORROW_LOAD_FAST_BORROW": {"LOAD_FAST", "LOAD_FAST"},
}

// borrowing maps the opcodes that load variables without a reference of their own to those that take one.
var borrowing = map[string]string{
	"LOAD_FAST_BORROW":                  "LOAD_FAST",
	"LOAD_FAST_BORROW_LOAD_FAST_BORROW": "LOAD_FAST_LOAD_FAST",
}

// subscript is the operator of 3.14 that was an opcode before, which the dialect keeps.
const subscript = "NB_SUBSCR"

// operators returns the operators of BINARY_OP in the dialect.
func (d *dump) operators() [][2]string {
	return slices.DeleteFunc(slices.Clone(d.NbOps), func(op [2]string) bool { return op[0] == subscript })
}

// pointsBack is an opcode whose argument names an instruction before it, but that does not jump.
const pointsBack = "END_ASYNC_FOR"

// aliases maps opcodes of the dialect to the opcodes that a version without them writes instead.
var aliases = map[string]string{"LOAD_CLOSURE": "LOAD_FAST"}

// dialectForm returns the opcode of the dialect to which a real opcode is decoded. Two opcodes that are one jump in
// both directions become one opcode: the direction is known only when code is laid out. A SEND that leaves the receiver
// on the stack for END_SEND has a name of its own.
func (d *dump) dialectForm(name string) (op string, backward, noInterrupt bool) {
	if _, ends := d.Opmap["END_SEND"]; ends && name == "SEND" {
		return "SEND_KEEP", false, false
	}
	if plain := borrowing[name]; plain == "LOAD_FAST" {
		return plain, false, false
	}
	switch {
	case name == "JUMP_FORWARD":
		return "JUMP", false, false
	case name == "JUMP_BACKWARD":
		return "JUMP", true, false
	case name == "JUMP_BACKWARD_NO_INTERRUPT":
		return "JUMP", true, true
	case strings.HasPrefix(name, "POP_JUMP_FORWARD_IF_"):
		return "POP_JUMP_IF_" + strings.TrimPrefix(name, "POP_JUMP_FORWARD_IF_"), false, false
	case strings.HasPrefix(name, "POP_JUMP_BACKWARD_IF_"):
		return "POP_JUMP_IF_" + strings.TrimPrefix(name, "POP_JUMP_BACKWARD_IF_"), true, false
	}
	return name, false, false
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: gen DIR")
	}
	dir := os.Args[1]
	dumps, err := readDumps(dir)
	if err != nil {
		log.Fatal(err)
	}
	ops := allOps(dumps)
	if err := write(filepath.Join(dir, "op_gen.go"), opFile(dumps, ops)); err != nil {
		log.Fatal(err)
	}
	for _, d := range dumps {
		text, err := versionFile(d)
		if err != nil {
			log.Fatal(err)
		}
		if err := write(filepath.Join(dir, d.base+"_gen.go"), text); err != nil {
			log.Fatal(err)
		}
	}
}

func readDumps(dir string) ([]*dump, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "py*.json"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("no py*.json in %s (%v)", dir, err)
	}
	slices.Sort(paths)
	var dumps []*dump
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		d := &dump{base: strings.TrimSuffix(filepath.Base(path), ".json")}
		if err := json.Unmarshal(data, d); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if len(d.ArgKinds["jump_absolute"]) > 0 {
			return nil, fmt.Errorf("%s: absolute jumps are not supported", path)
		}
		dumps = append(dumps, d)
	}
	return dumps, nil
}

// allOps returns the sorted names of the real opcodes of all versions and of the dialect's opcodes.
func allOps(dumps []*dump) []string {
	set := map[string]bool{}
	for _, d := range dumps {
		for name := range d.Opmap {
			form, _, _ := d.dialectForm(name)
			set[name], set[form] = true, true
			ops, _ := d.lowBits(name)
			for _, op := range ops {
				set[op] = true
			}
		}
	}
	delete(set, "")
	return slices.Sorted(maps.Keys(set))
}

// opFile returns the text of op_gen.go: enumerations, names, symbols of operators, flags.
func opFile(dumps []*dump, ops []string) string {
	var b strings.Builder
	header(&b, "py*.json")
	b.WriteString("// The opcodes of all supported Python versions and of the dialect. A Table maps them to " +
		"CPython's numbers.\nconst (\n\tINVALID Op = iota\n")
	for _, name := range ops {
		fmt.Fprintf(&b, "\t%s\n", name)
	}
	b.WriteString("\n\t// NumOps is one more than the largest Op.\n\tNumOps = int(iota)\n)\n\nvar opNames = " +
		"[NumOps]string{\n\tINVALID: \"INVALID\",\n")
	for _, name := range ops {
		fmt.Fprintf(&b, "\t%s: %q,\n", name, name)
	}
	b.WriteString("}\n\nvar argKinds = [NumOps]ArgKind{\n")
	kinds := opArgKinds(dumps)
	for _, name := range ops {
		if kind := kinds[name]; kind != "" {
			fmt.Fprintf(&b, "\t%s: %s,\n", name, kind)
		}
	}
	b.WriteString("}\n\n")
	latest := dumps[len(dumps)-1]
	b.WriteString("// The operators of BINARY_OP.\nconst (\n")
	operators := latest.operators()
	for i, op := range operators {
		fmt.Fprintf(&b, "\t%s BinaryOp = %d\n", op[0], i)
	}
	b.WriteString(")\n\nvar binarySymbols = [...]string{\n")
	for _, op := range operators {
		fmt.Fprintf(&b, "\t%s: %q,\n", op[0], op[1])
	}
	b.WriteString("}\n\nvar binaryNames = [...]string{\n")
	for _, op := range operators {
		fmt.Fprintf(&b, "\t%s: %q,\n", op[0], op[0])
	}
	b.WriteString("}\n\n// The comparisons: the values of COMPARE_OP's argument in the dialect.\nconst (\n")
	for i, symbol := range latest.CmpOp {
		fmt.Fprintf(&b, "\t%s CompareOp = %d\n", compareNames[symbol], i)
	}
	b.WriteString(")\n\nvar compareSymbols = [...]string{\n")
	for _, symbol := range latest.CmpOp {
		fmt.Fprintf(&b, "\t%s: %q,\n", compareNames[symbol], symbol)
	}
	b.WriteString("}\n\n// Flags of a code object (co_flags), as dis names them.\nconst (\n")
	writeInts(&b, "CO_", latest.CodeFlags)
	b.WriteString(")\n\n// The arguments of LOAD_SPECIAL.\nconst (\n")
	for i, name := range latest.SpecialMethods {
		fmt.Fprintf(&b, "\tSPECIAL_%s = %d\n", strings.ToUpper(strings.Trim(name, "_")), i)
	}
	b.WriteString(")\n\n// CommonConstants has the names of the builtins that LOAD_COMMON_CONSTANT loads.\n")
	fmt.Fprintf(&b, "var CommonConstants = [...]string{\"%s\"}\n", strings.Join(latest.CommonConsts, `", "`))
	b.WriteString("\n// Kinds of a localsplus slot. A parameter that is a cell has two kinds.\nconst (\n")
	writeInts(&b, "", latest.FastLocalKinds)
	b.WriteString(")\n\nvar tables = []*Table{")
	for _, d := range dumps {
		fmt.Fprintf(&b, "&%s,", d.base)
	}
	b.WriteString("}\n")
	return b.String()
}

// opArgKinds returns the kind of each opcode's argument. Opcodes without an argument are left out.
func opArgKinds(dumps []*dump) map[string]string {
	kinds := map[string]string{"BEFORE_WITH": "ArgNumber", "WITH_EXCEPT_START": "ArgNumber"} // the dialect's own
	for _, d := range dumps {
		for name, code := range d.Opmap {
			if code >= d.HaveArgument && kinds[name] == "" && name != pointsBack {
				kinds[name] = "ArgNumber"
			}
		}
		for kind, names := range d.ArgKinds {
			for _, name := range names {
				if name == pointsBack {
					continue
				}
				kinds[name] = argKinds[kind]
				form, _, _ := d.dialectForm(name)
				kinds[form] = argKinds[kind]
			}
		}
	}
	return kinds
}

func writeInts(b *strings.Builder, prefix string, values map[string]int) {
	names := slices.SortedFunc(maps.Keys(values), func(x, y string) int { return values[x] - values[y] })
	for _, name := range names {
		fmt.Fprintf(b, "\t%s%s = %#x\n", prefix, name, values[name])
	}
}

// versionFile returns the text of pyXYZ_gen.go, which is the Table of one version.
func versionFile(d *dump) (string, error) {
	var b strings.Builder
	header(&b, d.base+".json")
	names := slices.SortedFunc(maps.Keys(d.Opmap), func(x, y string) int { return d.Opmap[x] - d.Opmap[y] })
	encodings := map[string]*encoding{}
	d.writeTraits(&b)
	for _, name := range names {
		code := d.Opmap[name]
		if code < 0 || code > 255 {
			return "", fmt.Errorf("%s: opcode %s is %d", d.base, name, code)
		}
		op, backward, noInterrupt := d.dialectForm(name)
		fmt.Fprintf(&b, "\t\t%d: {Real: %s, Op: %s", code, name, op)
		if n := d.Caches[name]; n > 0 {
			fmt.Fprintf(&b, ", Caches: %d", n)
		}
		b.WriteString(d.formFlags(name))
		if pair, joined := pairs[name]; joined {
			fmt.Fprintf(&b, ", Pair: [2]Op{%s, %s}},\n", pair[0], pair[1])
			continue
		}
		if ops, bits := d.lowBits(name); ops != nil {
			fmt.Fprintf(&b, ", LowBits: %d, Choices: []Op{%s}},\n", bits, choices(ops))
			for low, op := range ops {
				if op != "" {
					encodings[op] = &encoding{forward: code, backward: -1, noInterrupt: -1, lowBits: bits, low: low}
				}
			}
			continue
		}
		b.WriteString("},\n")
		e := encodings[op]
		if e == nil {
			e = &encoding{forward: -1, backward: -1, noInterrupt: -1}
			encodings[op] = e
		}
		switch {
		case borrowing[name] != "":
			e.borrowed = code
		case noInterrupt:
			e.noInterrupt = code
		case backward:
			e.backward = code
		default:
			e.forward = code
		}
	}
	for op, real := range aliases {
		if e := encodings[real]; encodings[op] == nil && e != nil {
			encodings[op] = e
		}
	}
	b.WriteString("\t},\n\tEncodings: [NumOps]Encoding{\n")
	for _, op := range slices.Sorted(maps.Keys(encodings)) {
		e := encodings[op]
		fmt.Fprintf(&b, "\t\t%s: {Known: true, Forward: %d, Backward: %d, NoInterrupt: %d", op, e.forward,
			e.backward, e.noInterrupt)
		if e.lowBits > 0 {
			fmt.Fprintf(&b, ", LowBits: %d, Low: %d", e.lowBits, e.low)
		}
		if e.borrowed > 0 {
			fmt.Fprintf(&b, ", Borrowed: %d", e.borrowed)
		}
		b.WriteString("},\n")
	}
	b.WriteString("\t},\n}\n")
	return b.String(), nil
}

// formFlags returns the fields of an opcode's Form that are set: how it jumps, and that it borrows.
func (d *dump) formFlags(name string) string {
	text := ""
	_, backward, noInterrupt := d.dialectForm(name)
	switch {
	case !slices.Contains(d.ArgKinds["jump_relative"], name):
	case name == pointsBack:
		text += ", PointsBack: true"
	default:
		text += ", Jump: true"
	}
	if borrowing[name] != "" {
		text += ", Borrowed: true"
	}
	if backward {
		text += ", Backward: true"
	}
	if noInterrupt {
		text += ", NoInterrupt: true"
	}
	return text
}

// encoding has the numbers of one opcode of the dialect, as opcode.Encoding does.
type encoding struct{ forward, backward, noInterrupt, lowBits, low, borrowed int }

// writeTraits writes the beginning of a Table: everything but its opcodes.
func (d *dump) writeTraits(b *strings.Builder) {
	fmt.Fprintf(b, "var %s = Table{\n\tMajor: %d, Minor: %d,\n\tMagic: %q,\n\tHaveArgument: %d,\n",
		d.base, d.Version[0], d.Version[1], d.Magic, d.HaveArgument)
	fmt.Fprintf(b, "\tCompareArgs: %s,\n\tCompareBool: %d,\n\tNullAbove: %t,\n", compareArgs(d), d.CompareBool,
		d.NullAbove)
	fmt.Fprintf(b, "\tClearsBackward: %t,\n", d.ClearsBackward)
	fmt.Fprintf(b, "\tLoopEnd: []Op{%s},\n\tLeastStack: %d,\n\tMergesLines: %t,\n\tLineGaps: %t,\n"+
		"\tSubscript: %d,\n\tHandlerBefore: %t,\n\tForms: [256]Form{\n",
		choices(d.LoopEnd), d.LeastStack, d.MergesLines, d.LineGaps,
		slices.IndexFunc(d.NbOps, func(op [2]string) bool { return op[0] == subscript }), d.HandlerBefore)
}

// choices returns opcode names as the items of a Go list.
func choices(ops []string) string {
	items := make([]string, len(ops))
	for i, op := range ops {
		if items[i] = op; op == "" {
			items[i] = "INVALID"
		}
	}
	return strings.Join(items, ", ")
}

// compareArgs returns the arguments of COMPARE_OP as a Go array.
func compareArgs(d *dump) string {
	return strings.ReplaceAll(fmt.Sprintf("[6]uint8{%s}", strings.Trim(fmt.Sprint(d.CompareArgs), "[]")), " ", ", ")
}

func header(b *strings.Builder, from string) {
	fmt.Fprintf(b, "// Code generated by bytecode/opcode/gen from %s. DO NOT EDIT.\n\npackage opcode\n\n", from)
}

// write formats text as Go and writes it to path. If the file already has this text, it is not written, so its
// timestamp stays.
func write(path, text string) error {
	data, err := format.Source([]byte(text))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return nil
	}
	return os.WriteFile(path, data, 0o644)
}
