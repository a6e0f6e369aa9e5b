package variables

import "strings"

// TensorPlace returns the dict entry that holds the module's parameter or buffer with this dotted name. ok is false if
// there is no such entry, or if the module's dicts are unknown.
func (o *ObjectVariable) TensorPlace(tx Translator, name string) (dict *DictVariable, at int, ok bool, err error) {
	path := strings.Split(name, ".")
	for _, part := range path[:len(path)-1] {
		dv, err := o.lookup(tx, "_modules")
		if err != nil || dv == nil {
			return nil, 0, false, nil
		}
		v, found, err := moduleDictItem(tx, dv, part)
		if err != nil || !found {
			return nil, 0, false, nil
		}
		if v, err = Realize(tx, v); err != nil {
			return nil, 0, false, err
		}
		sub, ok := v.(*ObjectVariable)
		if !ok || !sub.IsModule(tx) || sub.Obj.IsNull() {
			return nil, 0, false, nil
		}
		o = sub
	}
	for _, part := range []string{"_parameters", "_buffers"} {
		dv, err := o.lookup(tx, part)
		if err != nil || dv == nil {
			return nil, 0, false, nil
		}
		v, err := Realize(tx, dv)
		if err != nil {
			return nil, 0, false, err
		}
		d, ok := v.(*DictVariable)
		if !ok {
			return nil, 0, false, nil
		}
		for i, k := range d.keys {
			if text, ok := ConstStr(tx, MustRealize(tx, k)); ok && text == path[len(path)-1] {
				if c, known := AsConstant(tx, MustRealize(tx, d.values[i])); known && c == pyNone {
					return nil, 0, false, nil
				}
				return d, i, true, nil
			}
		}
	}
	return nil, 0, false, nil
}
