package translate

import (
	"strings"

	"github.com/godynamo/godynamo/bytecode"
	"github.com/godynamo/godynamo/guards"
	"github.com/godynamo/godynamo/internal/exc"
	"github.com/godynamo/godynamo/pyhook/py"
	"github.com/godynamo/godynamo/variables"
)

// importName implements IMPORT_NAME for modules that are already in sys.modules.
//
//	stack: level fromlist -- module      arg: index of the name
//	breaks: GD0201, GD0401
func (tx *InstructionTranslator) importName(inst *bytecode.Instruction) error {
	fromlist, level := tx.pop(), tx.pop()
	name := tx.d.code.Names[inst.Arg]
	lv, ok := variables.ConstInt(tx, level)
	from, ok2 := variables.AsConstant(tx, fromlist)
	if !ok || !ok2 {
		return exc.Break(exc.CallUnsupported, "import of %s", name)
	}
	absolute := name
	if lv > 0 {
		var err error
		if absolute, err = tx.relativeName(name, lv); err != nil {
			return err
		}
	}
	s := tx.Scope()
	sys, err := s.Import("sys")
	if err != nil {
		return err
	}
	modules, err := s.GetAttr(sys, "modules")
	if err != nil {
		return err
	}
	full, ok := s.DictGetName(modules, absolute)
	if !ok || full.Kind() != py.Module {
		return exc.Break(exc.CallUnsupported, "import of %s, not imported before", absolute)
	}
	if own, ok := s.DictGetName(tx.builtins, "__import__"); !ok || own != tx.World().Builtin("__import__") {
		return exc.Break(exc.CallUnsupported, "import of %s by the program's own __import__", absolute)
	}
	if name, missing := missingSubmodule(s, full, from); missing {
		return exc.Break(exc.CallUnsupported, "import of %s.%s, not imported before", absolute, name)
	}
	pick := absolute
	if from == py.None() && lv == 0 {
		pick, _, _ = strings.Cut(name, ".")
	}
	m, ok := s.DictGetName(modules, pick)
	if !ok || m.Kind() != py.Module {
		return exc.Break(exc.CallUnsupported, "import of %s", absolute)
	}
	src := guards.NewDictGetItemSource(guards.NewConstSource(tx.out.Const(modules), "___sys_modules"),
		tx.out.Const(s.Name(pick)))
	tx.push(tx.Build(m, src))
	return nil
}

// missingSubmodule returns a name in `from package import names` that is not an attribute of the package yet. The
// import may add it to the package.
func missingSubmodule(s *py.Scope, module, names py.Object) (string, bool) {
	if _, isPackage := s.InstanceAttr(module, "__path__"); !isPackage || names.Kind() != py.Tuple {
		return "", false
	}
	for _, n := range s.Items(names) {
		if name := py.GoString(n); name != "" {
			if _, there := s.InstanceAttr(module, name); !there {
				return name, true
			}
		}
	}
	return "", false
}

// relativeName resolves the leading dots of an imported name against `__package__` in the frame's globals.
func (tx *InstructionTranslator) relativeName(name string, level int) (string, error) {
	v, err := tx.global("__package__")
	if err != nil {
		return "", err
	}
	if v, err = variables.Realize(tx, v); err != nil {
		return "", err
	}
	pkg, ok := variables.ConstStr(tx, v)
	if !ok || pkg == "" {
		return "", exc.Break(exc.CallUnsupported, "relative import without a package")
	}
	for ; level > 1; level-- {
		at := strings.LastIndexByte(pkg, '.')
		if at < 0 {
			return "", exc.Break(exc.ProgramRaises, "relative import beyond the top-level package")
		}
		pkg = pkg[:at]
	}
	if name == "" {
		return pkg, nil
	}
	return pkg + "." + name, nil
}

// importFrom implements IMPORT_FROM. It pushes an attribute of the module, or the submodule of that name.
//
//	stack: module -- module value      arg: index of the name
//	breaks: GD0202, GD0401
func (tx *InstructionTranslator) importFrom(inst *bytecode.Instruction) error {
	name := tx.d.code.Names[inst.Arg]
	v, err := variables.GetAttr(tx, tx.top(1), name)
	if o, ok := err.(*exc.Observed); ok && o.TypeName == "AttributeError" {
		return exc.Break(exc.ProgramRaises, "import of the name %s", name)
	}
	if err != nil {
		return err
	}
	tx.push(v)
	return nil
}
