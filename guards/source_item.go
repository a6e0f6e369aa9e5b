package guards

import "strconv"

// GetItemSource is a dict's value for a key, read from the dict's own storage: __missing__ and an overridden
// __getitem__ are not called. Hashing and comparing a key must run no user code: a key is a str, int, bool,
// None, a tuple of these, or an object compared by identity (a type, an enum member).
type GetItemSource struct {
	origin
	Key Const
}

// NewDictGetItemSource returns the source of base[key].
func NewDictGetItemSource(base Source, key Const) *GetItemSource {
	s := &GetItemSource{from(base), key}
	s.name = s.text(nil)
	return s
}

func (s *GetItemSource) text(p *printer) string {
	return printed(s.base, p) + "[" + constText(s.Key) + "]"
}

// ODictGetItemSource does the same as GetItemSource for a dict subclass. The printed form bypasses the
// subclass's __getitem__.
type ODictGetItemSource struct{ GetItemSource }

// NewODictGetItemSource returns the source of dict.__getitem__(base, key).
func NewODictGetItemSource(base Source, key Const) *ODictGetItemSource {
	s := &ODictGetItemSource{GetItemSource{from(base), key}}
	s.name = s.text(nil)
	return s
}

func (s *ODictGetItemSource) text(p *printer) string {
	return "___dict_getitem(" + printed(s.base, p) + ", " + constText(s.Key) + ")"
}

// ObjectKeySource is a dict's value for a key that equals only itself, such as a tensor or a module.
type ObjectKeySource struct {
	origin
	Key Source // the place of the key
}

// NewObjectKeySource returns the source of base[key].
func NewObjectKeySource(base, key Source) *ObjectKeySource {
	s := &ObjectKeySource{from(base), key}
	s.name = s.text(nil)
	return s
}

func (s *ObjectKeySource) text(p *printer) string {
	return printed(s.base, p) + "[" + printed(s.Key, p) + "]"
}

// IndexSource is an item of a list or tuple, read from its storage.
type IndexSource struct {
	origin
	Index int // negative counts from the end
}

// NewIndexSource returns the source of base[i].
func NewIndexSource(base Source, i int) *IndexSource {
	s := &IndexSource{from(base), i}
	s.name = s.text(nil)
	return s
}

func (s *IndexSource) text(p *printer) string {
	return printed(s.base, p) + "[" + strconv.Itoa(s.Index) + "]"
}

// DictKeySource is the i-th key of a dict or the i-th member of a set, in the order of iteration.
type DictKeySource struct {
	origin
	Index int
}

// NewDictKeySource returns the source of list(base)[i].
func NewDictKeySource(base Source, i int) *DictKeySource {
	s := &DictKeySource{from(base), i}
	s.name = s.text(nil)
	return s
}

func (s *DictKeySource) text(p *printer) string {
	return "list(" + printed(s.base, p) + ")[" + strconv.Itoa(s.Index) + "]"
}

// DictValueSource is the value of the i-th key of a dict, in the dict's order. It is for keys that guards cannot look
// up without keeping them alive.
type DictValueSource struct {
	origin
	Index int
}

// NewDictValueSource returns the source of list(base.values())[i].
func NewDictValueSource(base Source, i int) *DictValueSource {
	s := &DictValueSource{from(base), i}
	s.name = s.text(nil)
	return s
}

func (s *DictValueSource) text(p *printer) string {
	return "___dict_value(" + printed(s.base, p) + ", " + strconv.Itoa(s.Index) + ")"
}

// TupleIteratorGetItemSource is the i-th item that a tuple iterator has not yet returned.
type TupleIteratorGetItemSource struct {
	origin
	Index int
}

// NewTupleIteratorGetItemSource returns the source of the i-th item left in the iterator at base.
func NewTupleIteratorGetItemSource(base Source, i int) *TupleIteratorGetItemSource {
	s := &TupleIteratorGetItemSource{from(base), i}
	s.name = s.text(nil)
	return s
}

func (s *TupleIteratorGetItemSource) text(p *printer) string {
	return "___tuple_iterator_getitem(" + printed(s.base, p) + ", " + strconv.Itoa(s.Index) + ")"
}

// IteratorRead is what an IteratorSource reads.
type IteratorRead uint8

// The values of IteratorRead; pyhook/core/guards/iterators.h describes each.
const (
	IteratorPart IteratorRead = iota
	IteratorItem
	IteratorValue
	IteratorNumber
)

var iteratorReads = [...]struct {
	name string
	op   Op
}{{"iterator_part", OpIterPart}, {"iterator_item", OpIterItem}, {"iterator_value", OpIterValue},
	{"iterator_number", OpIterNumber}}

// IteratorSource is a part of an iterator of a builtin type, or the item that it yields after Index others.
type IteratorSource struct {
	origin
	Read  IteratorRead
	Index int
}

// NewIteratorSource returns the source of what is read from the iterator at base.
func NewIteratorSource(base Source, read IteratorRead, i int) *IteratorSource {
	s := &IteratorSource{from(base), read, i}
	s.name = s.text(nil)
	return s
}

func (s *IteratorSource) text(p *printer) string {
	return "___" + iteratorReads[s.Read].name + "(" + printed(s.base, p) + ", " + strconv.Itoa(s.Index) + ")"
}

// GlobalWeakRefSource is the referent of a weak reference kept in a global, or None once the referent has died.
type GlobalWeakRefSource struct {
	origin
	Global string
}

// NewGlobalWeakRefSource returns the source of globals[name]().
func NewGlobalWeakRefSource(name string) *GlobalWeakRefSource {
	s := &GlobalWeakRefSource{from(NewGlobalSource(name)), name}
	s.name = s.text(nil)
	return s
}

func (s *GlobalWeakRefSource) text(p *printer) string { return printed(s.base, p) + "()" }

// ReferentSource is the referent of a weak reference, or None once the referent has died.
type ReferentSource struct{ origin }

// NewReferentSource returns the source of the referent of the weak reference at base. If the weak reference's class
// overrides __call__, that method is not called.
func NewReferentSource(base Source) *ReferentSource {
	s := &ReferentSource{from(base)}
	s.name = s.text(nil)
	return s
}

func (s *ReferentSource) text(p *printer) string { return "___referent(" + printed(s.base, p) + ")" }
