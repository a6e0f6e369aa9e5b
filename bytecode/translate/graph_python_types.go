package translate

import (
	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/bytecode/opcode"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// With python_ops="checked" an annotation declares the type of a Python call's result. An unknown value is checked by
// CastFromPython, which raises ValueError if the value has another type. The check runs when the value is assigned to
// an annotated variable, and when a function with a return annotation returns it.
// godynamo._backends.python_types.asked_of reads the annotations from the source.

// checkedAt lists the instructions at which a value may be checked: those that store a variable or return.
var checkedAt = map[opcode.Op]bool{opcode.STORE_FAST: true, opcode.STORE_DEREF: true, opcode.RETURN_VALUE: true}

// checkTypes checks the value that the instruction stores or returns, then runs the instruction.
func (tx *InstructionTranslator) checkTypes(inst *bytecode.Instruction) error {
	spec, ok, err := tx.annotationAt(inst)
	if err != nil {
		return err
	}
	if ok {
		v, err := tx.cast(tx.pop(), spec)
		if err != nil {
			return err
		}
		tx.push(v)
	}
	return handlers[inst.Op].run(tx, inst)
}

// annotationAt returns, as (text, parts), the annotation of the variable that an instruction stores or of the value
// that it returns.
func (tx *InstructionTranslator) annotationAt(inst *bytecode.Instruction) (py.Object, bool, error) {
	p := &tx.out.python
	s := tx.Scope()
	table, ok := p.types[tx.d.object]
	if !ok {
		m, err := s.Import("godynamo._backends.python_types")
		if err != nil {
			return py.Object{}, false, err
		}
		if table, err = s.CallMethod(m, "asked_of", tx.d.object, tx.globals); err != nil {
			return py.Object{}, false, err
		}
		if p.types == nil {
			p.types = map[py.Object]py.Object{}
		}
		p.types[s.Hold(tx.d.object)] = table
	}
	key := s.Name("return")
	if inst.Op != opcode.RETURN_VALUE {
		key = s.Tuple(s.Int(int64(inst.Pos.Line)), s.Int(int64(inst.Pos.Col)))
	}
	spec, ok := s.DictGet(table, key)
	return spec, ok, nil
}

// cast adds a check of an unknown value, or of each unknown item of a tuple made by the user's code, and returns the
// checked value.
func (tx *InstructionTranslator) cast(v variables.VariableTracker, spec py.Object) (variables.VariableTracker, error) {
	v, err := variables.Realize(tx, v)
	if err != nil {
		return nil, err
	}
	parts := tx.Scope().Items(spec)
	text, items := parts[0], parts[1]
	switch x := v.(type) {
	case *variables.OpaqueVariable:
		return tx.castOpaque(x, text)
	case *variables.TupleVariable:
		return tx.castTuple(x, items)
	}
	return v, nil
}

func (tx *InstructionTranslator) castOpaque(v *variables.OpaqueVariable,
	text py.Object) (variables.VariableTracker, error) {
	types := variables.Kw{Name: "types", Value: variables.NewConstant(text, nil)}
	r, err := tx.out.pythonNode(tx, "CastFromPython", []variables.VariableTracker{v}, []variables.Kw{types})
	if err != nil {
		return nil, err
	}
	r.Node.Inplace = true
	if py.GoString(text) == "Tensor" {
		tx.World().Casts++
		return variables.NewTensor(r.Node), nil
	}
	return r, nil
}

func (tx *InstructionTranslator) castTuple(v *variables.TupleVariable,
	items py.Object) (variables.VariableTracker, error) {
	specs := tx.Scope().Items(items)
	values, err := v.Items(tx)
	if err != nil || len(specs) != len(values) || variables.Materialized(v) {
		return v, err
	}
	out := make([]variables.VariableTracker, len(values))
	for i, it := range values {
		if out[i] = it; specs[i] == py.None() {
			continue
		}
		if out[i], err = tx.cast(it, specs[i]); err != nil {
			return nil, err
		}
	}
	return variables.NewTuple(out, nil), nil
}
