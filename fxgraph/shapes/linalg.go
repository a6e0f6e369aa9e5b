package shapes

import "math"

// Rules of linear algebra. A matrix, or a batch of matrices, has at least two dimensions.

// matrix reads an operand of shape (*batch, rows, columns).
func (c *call) matrix(i int, name string) (t *Tensor, batch []Size, rows, columns Size) {
	t = c.tensor(i, name)
	n := len(t.Shape)
	if n < 2 {
		c.bad = true
		return t, nil, one, one
	}
	return t, t.Shape[: n-2 : n-2], t.Shape[n-2], t.Shape[n-1]
}

// square reads a batch of square matrices.
func (c *call) square(i int, name string) (t *Tensor, batch []Size, n Size) {
	t, batch, n, columns := c.matrix(i, name)
	if !c.requireEqual(n, columns) {
		c.bad = true
	}
	return t, batch, n
}

func joined(batch []Size, sizes ...Size) []Size {
	return append(batch[:len(batch):len(batch)], sizes...)
}

// squareSame is the rule of functions from square matrices to matrices of the same shape, such as inv.
func squareSame(names ...string) rule {
	return func(c *call) Value {
		c.only(1 + len(names))
		t, _, _ := c.square(0, "input")
		c.ignore(names...)
		return c.inexact(t)
	}
}

// inexact returns t, or fails for integers.
func (c *call) inexact(t *Tensor) Value {
	if !t.Dtype.floating() {
		return c.fail()
	}
	return t
}

// squareNumber is the rule of functions from square matrices to one number each, such as det.
func squareNumber(c *call) Value {
	c.only(1)
	t, batch, _ := c.square(0, "A")
	if c.bad || !t.Dtype.floating() {
		return c.fail()
	}
	return t.with(batch)
}

// withInfo is the rule of functions such as inv_ex, whose second result is an int for each matrix.
func withInfo(c *call) Value {
	c.only(1)
	t, batch, _ := c.square(0, "input")
	c.ignore("check_errors", "upper")
	if c.bad || !t.Dtype.floating() {
		return c.fail()
	}
	return List{t, t.with(batch).as(torchInt32)}
}

// slogdet yields signs and logarithms of the absolute values.
func slogdet(c *call) Value {
	t, ok := squareNumber(c).(*Tensor)
	if !ok {
		return c.fail()
	}
	return List{t, t.as(t.Dtype.real())}
}

// eigen is the rule of eig and eigh. Eigenvalues of a symmetric matrix are real, other results complex.
func eigen(symmetric, vectors bool) rule {
	return func(c *call) Value {
		c.only(2)
		t, batch, n := c.square(0, "A")
		if symmetric {
			c.at(1, "UPLO")
		} else {
			c.only(1)
		}
		if c.bad || !t.Dtype.floating() {
			return c.fail()
		}
		d := t.Dtype
		if !symmetric && kinds[d] == floatKind {
			d = complexOf[d]
		}
		values := &Tensor{joined(batch, n), d, t.Device}
		if symmetric {
			values.Dtype = d.real()
		}
		if !vectors {
			return values
		}
		return List{values, t.as(d)}
	}
}

// svd is the rule of torch.linalg.svd.
func svd(c *call) Value {
	c.only(2)
	t, batch, m, n := c.matrix(0, "A")
	full := c.boolean(1, "full_matrices", true)
	c.ignore("driver")
	k := c.Env.Min(m, n)
	if c.bad || !t.Dtype.floating() {
		return c.fail()
	}
	left, right := k, k
	if full {
		left, right = m, n
	}
	return List{t.with(joined(batch, m, left)), t.with(joined(batch, k)).as(t.Dtype.real()),
		t.with(joined(batch, right, n))}
}

func svdvals(c *call) Value {
	c.only(1)
	t, batch, m, n := c.matrix(0, "A")
	c.ignore("driver")
	if c.bad || !t.Dtype.floating() {
		return c.fail()
	}
	return t.with(joined(batch, c.Env.Min(m, n))).as(t.Dtype.real())
}

func qr(c *call) Value {
	c.only(2)
	t, batch, m, n := c.matrix(0, "A")
	mode := c.at(1, "mode")
	k := c.Env.Min(m, n)
	if c.bad || !t.Dtype.floating() || mode != nil && mode != Value(Str("reduced")) && mode != Value(Str("complete")) {
		return c.fail()
	}
	if mode == Value(Str("complete")) {
		k = m
	}
	return List{t.with(joined(batch, m, k)), t.with(joined(batch, k, n))}
}

// lu is the rule of torch.linalg.lu.
func lu(c *call) Value {
	c.only(1)
	t, batch, m, n := c.matrix(0, "A")
	pivot := c.boolean(-1, "pivot", true)
	k := c.Env.Min(m, n)
	if c.bad || !t.Dtype.floating() || !pivot {
		return c.fail()
	}
	return List{t.with(joined(batch, m, m)), t.with(joined(batch, m, k)), t.with(joined(batch, k, n))}
}

// luFactor is the rule of torch.linalg.lu_factor or, if info is set, of lu_factor_ex.
func luFactor(info bool) rule {
	return func(c *call) Value {
		c.only(1)
		t, batch, m, n := c.matrix(0, "A")
		c.ignore("pivot", "check_errors")
		if c.bad || !t.Dtype.floating() {
			return c.fail()
		}
		out := List{t, t.with(joined(batch, c.Env.Min(m, n))).as(torchInt32)}
		if info {
			out = append(out, t.with(batch).as(torchInt32))
		}
		return out
	}
}

func pinv(c *call) Value {
	t, batch, m, n := c.matrix(0, "input")
	for i, name := range []string{"atol", "rtol", "hermitian"} {
		if _, is := c.at(i+1, name).(*Tensor); is {
			return c.fail()
		}
	}
	c.ignore("rcond")
	if c.bad || !t.Dtype.floating() {
		return c.fail()
	}
	return t.with(joined(batch, n, m))
}

// solve is the rule of torch.linalg.solve(A, B) for a B with as many dimensions as A. If B has fewer dimensions, it may
// be a batch of vectors or of matrices, depending on its sizes.
func solve(c *call) Value {
	c.only(2)
	a, batch, n := c.square(0, "A")
	b, more, rows, columns := c.matrix(1, "B")
	c.oneDtype(a, b)
	c.oneDevice(a, b)
	if left := c.boolean(-1, "left", true); !left || len(a.Shape) != len(b.Shape) || !c.requireEqual(rows, n) {
		return c.fail()
	}
	return b.with(joined(c.broadcast(batch, more), rows, columns))
}

// solveTriangular is the rule of torch.linalg.solve_triangular(A, B) and of torch.cholesky_solve(B, L).
func solveTriangular(unknowns, factor int, names ...string) rule {
	return func(c *call) Value {
		c.only(3)
		if len(c.args) < 2 {
			return c.fail()
		}
		a, batch, _ := c.square(factor, "")
		b, more, rows, columns := c.matrix(unknowns, "")
		c.at(2, "upper")
		c.ignore(names...)
		c.oneDtype(a, b)
		c.oneDevice(a, b)
		return b.with(joined(c.broadcast(batch, more), rows, columns))
	}
}

// matrixNorm is the rule of torch.linalg.matrix_norm(A, ord, dim=(-2, -1), keepdim).
func matrixNorm(c *call) Value {
	c.only(4)
	t := c.tensor(0, "A")
	c.at(1, "ord")
	dims := c.at(2, "dim")
	if none(dims) {
		dims = List{Constant(-2), Constant(-1)}
	}
	keep := c.boolean(3, "keepdim", false)
	d := c.dtype(c.at(-1, "dtype"), t.Dtype)
	if c.bad || !t.Dtype.floating() || len(t.Shape) < 2 {
		return c.fail()
	}
	return &Tensor{c.reduced(t, dims, keep), d.real(), t.Device}
}

// vectorNorm is the rule of torch.linalg.vector_norm and of torch.linalg.norm, over all dimensions if dim is absent.
func vectorNorm(c *call) Value {
	c.only(4)
	t := c.tensor(0, "x")
	if v := c.at(-1, "input"); v != nil {
		return c.fail()
	}
	c.at(1, "ord")
	shape := c.reduced(t, c.at(2, "dim"), c.boolean(3, "keepdim", false))
	d := c.dtype(c.at(-1, "dtype"), t.Dtype)
	if c.bad || !t.Dtype.floating() {
		return c.fail()
	}
	return &Tensor{shape, d.real(), t.Device}
}

// dot is the rule of the product of two vectors.
func dot(c *call) Value {
	c.only(2)
	a, b := c.tensor(0, "input"), c.tensor(1, "tensor")
	c.oneDtype(a, b)
	c.oneDevice(a, b)
	if len(a.Shape) != 1 || len(b.Shape) != 1 || !c.requireEqual(a.Shape[0], b.Shape[0]) {
		return c.fail()
	}
	return a.with([]Size{})
}

// outer is the rule of the outer product of two vectors.
func outer(c *call) Value {
	c.only(2)
	a, b := c.tensor(0, "input"), c.tensor(1, "vec2")
	if len(a.Shape) != 1 || len(b.Shape) != 1 {
		return c.fail()
	}
	c.oneDevice(a, b)
	return &Tensor{[]Size{a.Shape[0], b.Shape[0]}, c.resultType(a, b), a.Device}
}

// mv is the rule of a matrix times a vector.
func mv(c *call) Value {
	c.only(2)
	a, b := c.tensor(0, "input"), c.tensor(1, "vec")
	c.oneDtype(a, b)
	c.oneDevice(a, b)
	if len(a.Shape) != 2 || len(b.Shape) != 1 || !c.requireEqual(a.Shape[1], b.Shape[0]) {
		return c.fail()
	}
	return a.with([]Size{a.Shape[0]})
}

// addend returns the rule of functions that add a product to a tensor. product is the rule of the product, and names
// has the names of its operands.
func addend(product rule, names ...string) rule {
	return func(c *call) Value {
		c.only(3)
		t := c.tensor(0, "input")
		inner := &call{Context: c.Context, args: List{c.tensor(1, names[0]), c.tensor(2, names[1])}}
		p, ok := product(inner).(*Tensor)
		c.ignore("beta", "alpha")
		if !ok || inner.bad {
			return c.fail()
		}
		c.oneDtype(t, p)
		c.oneDevice(t, p)
		if c.bad || !c.equal(c.broadcast(t.Shape, p.Shape), p.Shape) {
			return c.fail()
		}
		return p
	}
}

// addmv is the rule of beta * input + mat @ vec. If mat has no elements, torch computes beta * input only, in the
// shape of input, unless beta is 0.
func addmv(c *call) Value {
	p, ok := addend(mv, "mat", "vec")(c).(*Tensor)
	if !ok {
		return c.fail()
	}
	t, mat := c.tensor(0, "input"), c.tensor(1, "mat")
	if c.equal(t.Shape, p.Shape) || c.positive(c.numel(mat.Shape)) {
		return p
	}
	switch beta := c.at(-1, "beta").(type) {
	case nil:
		return t
	case Int:
		if c.fixed(beta.Size) != 0 {
			return t
		}
		return p
	case Float:
		if beta == 0 {
			return p
		}
		if !math.IsNaN(float64(beta)) {
			return t
		}
	}
	return c.fail()
}

// sumOfProducts is the rule of the product in addbmm: the result of bmm, summed over the batch.
func sumOfProducts(c *call) Value {
	p := c.product(c.tensor(0, "batch1"), c.tensor(1, "batch2"), 3)
	if c.bad {
		return nil
	}
	return p.with(p.Shape[1:])
}

// kron is the rule of the Kronecker product.
func kron(c *call) Value {
	c.only(2)
	a, b := c.tensor(0, "input"), c.tensor(1, "other")
	c.oneDevice(a, b)
	n := max(len(a.Shape), len(b.Shape))
	out := make([]Size, n)
	for i := range out {
		out[i] = one
		for _, s := range [][]Size{a.Shape, b.Shape} {
			if at := i - (n - len(s)); at >= 0 {
				out[i] = c.Env.Mul(out[i], s[at])
			}
		}
	}
	return &Tensor{out, c.resultType(a, b), a.Device}
}

// crossProduct is the rule of torch.linalg.cross.
func crossProduct(c *call) Value {
	c.only(2)
	c.integer(-1, "dim", -1)
	return c.crossed()
}

// crossed returns the result of a cross product of the first two operands.
func (c *call) crossed() Value {
	a, b := c.tensor(0, "input"), c.tensor(1, "other")
	c.oneDtype(a, b)
	if len(a.Shape) != len(b.Shape) {
		return c.fail()
	}
	return c.pointwise(a.Dtype, a, b)
}

// vecdot is the rule of torch.linalg.vecdot, which sums products along a dimension.
func vecdot(c *call) Value {
	c.only(2)
	a, b := c.tensor(0, "x"), c.tensor(1, "y")
	d := c.integer(-1, "dim", -1)
	c.oneDtype(a, b)
	p := c.pointwise(a.Dtype, a, b)
	if c.bad || !a.Dtype.floating() {
		return c.fail()
	}
	return p.with(c.reduced(p, Constant(d), false))
}

// tensordot is the rule of torch.tensordot(a, b, dims), and of the C function, which takes two lists of dimensions.
func tensordot(c *call) Value {
	c.only(4)
	a, b := c.tensor(0, "a"), c.tensor(1, "b")
	dims := c.at(2, "dims")
	if len(c.args) == 4 {
		dims = List{c.args[2], c.args[3]}
	}
	first, second, ok := c.contracted(dims, len(a.Shape))
	c.oneDtype(a, b)
	c.oneDevice(a, b)
	if c.bad || !ok || len(first) != len(second) {
		return c.fail()
	}
	gone, taken := map[int]bool{}, map[int]bool{}
	for i := range first {
		x, y := c.dim(first[i], len(a.Shape)), c.dim(second[i], len(b.Shape))
		if c.bad || gone[x] || taken[y] || !c.requireEqual(a.Shape[x], b.Shape[y]) {
			return c.fail()
		}
		gone[x], taken[y] = true, true
	}
	out := []Size{}
	for i, s := range a.Shape {
		if !gone[i] {
			out = append(out, s)
		}
	}
	for i, s := range b.Shape {
		if !taken[i] {
			out = append(out, s)
		}
	}
	return a.with(out)
}

// contracted returns the dimensions of both operands over which tensordot sums. v is a pair of lists of dimensions or
// an int k. An int means the last k dimensions of the first operand, which has n dimensions, and the first k of the
// second.
func (c *call) contracted(v Value, n int) (first, second []int, ok bool) {
	switch v := v.(type) {
	case nil, Int:
		k := 2
		if v != nil {
			k = c.constant(v.(Int).Size)
		}
		if c.bad || k > n || k < 0 {
			return nil, nil, false
		}
		for i := range k {
			first, second = append(first, n-k+i), append(second, i)
		}
		return first, second, true
	case List:
		if len(v) != 2 {
			return nil, nil, false
		}
		return c.ints(v[0]), c.ints(v[1]), !c.bad
	}
	return nil, nil, false
}

// cdist is the rule of torch.cdist, the distances between the rows of two batches of matrices.
func cdist(c *call) Value {
	a, batch, m, d := c.matrix(0, "x1")
	b, more, n, e := c.matrix(1, "x2")
	c.at(2, "p")
	c.at(3, "compute_mode")
	c.oneDtype(a, b)
	c.oneDevice(a, b)
	if c.bad || kinds[a.Dtype] != floatKind || !c.requireEqual(d, e) {
		return c.fail()
	}
	return a.with(joined(c.broadcast(batch, more), m, n))
}

// condition is the rule of torch.linalg.cond(A, p).
func condition(c *call) Value {
	c.only(2)
	t, batch, _, _ := c.matrix(0, "A")
	c.at(1, "p")
	if c.bad || !t.Dtype.floating() {
		return c.fail()
	}
	return t.with(batch).as(t.Dtype.real())
}

func matrixRank(c *call) Value {
	c.only(1)
	t, batch, _, _ := c.matrix(0, "A")
	for _, name := range []string{"tol", "atol", "rtol"} {
		if _, is := c.at(-1, name).(*Tensor); is {
			return c.fail()
		}
	}
	c.ignore("hermitian")
	if c.bad || !t.Dtype.floating() {
		return c.fail()
	}
	return t.with(batch).as(torchInt64)
}

// oldSVD is the rule of torch.svd(input, some, compute_uv), whose last result is not transposed.
func oldSVD(c *call) Value {
	c.only(3)
	t, batch, m, n := c.matrix(0, "input")
	some, vectors := c.boolean(1, "some", true), c.boolean(2, "compute_uv", true)
	k := c.Env.Min(m, n)
	if c.bad || !t.Dtype.floating() {
		return c.fail()
	}
	left, right := m, n
	if some && vectors {
		left, right = k, k
	}
	return List{t.with(joined(batch, m, left)), t.with(joined(batch, k)).as(t.Dtype.real()),
		t.with(joined(batch, n, right))}
}

// inner is the rule of torch.inner, which sums over the last dimensions.
func inner(c *call) Value {
	c.only(2)
	a, b := c.tensor(0, "input"), c.tensor(1, "other")
	c.oneDtype(a, b)
	c.oneDevice(a, b)
	n, m := len(a.Shape), len(b.Shape)
	switch {
	case n == 0 || m == 0:
		return c.pointwise(a.Dtype, a, b)
	case !c.requireEqual(a.Shape[n-1], b.Shape[m-1]):
		return c.fail()
	}
	return a.with(joined(a.Shape[:n-1], b.Shape[:m-1]...))
}

// crossOld is the rule of torch.cross, whose dimension may be absent.
func crossOld(c *call) Value {
	c.only(3)
	c.at(2, "dim")
	return c.crossed()
}

// chain is the rule of torch.linalg.multi_dot. The first and the last operand may be vectors.
func chain(c *call) Value {
	c.only(1)
	list, ok := c.at(0, "tensors").(List)
	if !ok || len(list) < 2 {
		return c.fail()
	}
	v := list[0]
	for _, next := range list[1:] {
		step := &call{Context: c.Context, args: List{v, next}}
		t, ok := matmul(step).(*Tensor)
		if !ok || step.bad {
			return c.fail()
		}
		v = t
	}
	return v
}

// covariance is the rule of torch.cov and torch.corrcoef for a matrix or a vector.
func covariance(names ...string) rule {
	return func(c *call) Value {
		c.only(1)
		t := c.tensor(0, "input")
		c.ignore(names...)
		if c.bad || !t.Dtype.floating() || len(t.Shape) > 2 {
			return c.fail()
		}
		if len(t.Shape) < 2 {
			return t.with([]Size{})
		}
		if c.eq(t.Shape[0], one) { // one variable: a number
			return t.with([]Size{})
		}
		return t.with([]Size{t.Shape[0], t.Shape[0]})
	}
}
