package shapes

import "strings"

// functions and methods map the names that graphs print to rules.
var functions, methods = map[string]rule{}, map[string]rule{}

// inPlace lists operations that change an operand's values, but no tensor's sizes, dtype or device, and that
// changesInPlace does not recognize by name.
var inPlace = map[string]bool{}

// resizing lists in-place operations that may change the sizes of their operand. addbmm_, for example, broadcasts it.
var resizing = map[string]bool{"resize_": true, "resize_as_": true, "resize_as_sparse_": true, "sparse_resize_": true,
	"sparse_resize_and_clear_": true, "set_": true, "as_strided_": true, "squeeze_": true, "unsqueeze_": true,
	"t_": true, "transpose_": true, "swapaxes_": true, "swapdims_": true, "addbmm_": true, "baddbmm_": true,
	"addmm_": true, "addmv_": true, "addr_": true}

// changesInPlace reports whether a method or function of torch only changes the values of its first operand and returns
// that operand. Its name then ends in "_".
func changesInPlace(name string) bool {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "torch."), "_C._nn.")
	return strings.HasSuffix(name, "_") && !strings.HasSuffix(name, "__") && !strings.Contains(name, ".") &&
		!resizing[name]
}

// both registers a rule as torch.NAME and as a method.
func both(r rule, names ...string) {
	for _, name := range names {
		functions["torch."+name] = r
		methods[name] = r
	}
}

func function(r rule, names ...string) {
	for _, name := range names {
		functions[name] = r
	}
}

func method(r rule, names ...string) {
	for _, name := range names {
		methods[name] = r
	}
}

func init() {
	// Operations on one operand that keep its shape.
	both(floatUnary, "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sigmoid", "tanh", "sin",
		"cos", "tan", "sinh",
		"cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "erf", "erfc", "erfinv", "reciprocal",
		"lgamma", "digamma")
	both(same(), "relu", "neg", "negative", "detach", "sign", "floor", "ceil",
		"trunc", "positive")
	function(same("p", "train", "training"), "torch.dropout", "torch.alpha_dropout", "torch.feature_dropout",
		"torch.feature_alpha_dropout")
	both(same("shifts", "dims"), "roll", "flip")
	both(triangle, "tril", "triu")
	both(same(), "bitwise_not")
	function(same(), "operator.invert")
	function(same(), "operator.neg", "operator.pos")
	method(alone("memory_format"), "contiguous", "clone")
	function(alone("memory_format"), "torch.clone")
	function(activation("approximate", "negative_slope", "alpha", "scale", "input_scale", "lambd", "beta", "threshold",
		"min_val", "max_val"),
		"torch._C._nn.gelu", "torch._C._nn.silu", "torch._C._nn.mish", "torch._C._nn.elu", "torch._C._nn.leaky_relu",
		"torch._C._nn.hardtanh",
		"torch._C._nn.relu6", "torch._C._nn.hardswish", "torch._C._nn.hardsigmoid", "torch._C._nn.softplus",
		"torch._C._nn.softshrink",
		"torch._C._nn.log_sigmoid", "torch.celu", "torch.selu")
	function(sameFloat("normalized_shape", "weight", "bias", "eps", "cudnn_enable"), "torch.layer_norm")
	function(sameFloat("normalized_shape", "weight", "eps"), "torch.rms_norm")
	function(sameFloat("weight", "bias", "running_mean", "running_var", "training", "use_input_stats", "momentum",
		"eps", "cudnn_enabled"),
		"torch.batch_norm", "torch.instance_norm")
	function(sameFloat("num_groups", "weight", "bias", "eps", "cudnn_enabled"), "torch.group_norm")
	both(test, "isnan", "isinf", "isfinite", "logical_not")
	both(absolute, "abs", "absolute")
	both(square, "square")
	function(absolute, "builtins.abs", "operator.abs")
	both(softmax, "softmax", "log_softmax")
	both(cumulative, "cumsum", "cumprod")
	both(diff, "diff")

	// Elementwise operations on several operands.
	both(binary("alpha"), "add")
	both(arithmetic("alpha"), "sub", "subtract")
	both(binary(), "mul", "multiply")
	both(tensors(binary()), "maximum", "minimum")
	both(arithmetic(), "fmod", "remainder")
	function(binary(), "operator.add", "operator.mul")
	function(arithmetic(), "operator.sub", "operator.mod")
	both(power, "pow")
	function(power, "operator.pow")
	both(trueDivide, "true_divide", "div", "divide")
	function(trueDivide, "operator.truediv")
	both(comparison, "eq", "ne", "lt", "le", "gt", "ge")
	both(tensors(comparison), "logical_and", "logical_or", "logical_xor")
	function(comparison, "operator.eq", "operator.ne", "operator.lt", "operator.le", "operator.gt", "operator.ge")
	both(bitwise, "bitwise_and", "bitwise_or", "bitwise_xor")
	function(bitwise, "operator.and_", "operator.or_", "operator.xor")
	function(whereTrue, "torch.where")
	method(whereMethod, "where")
	both(clamp, "clamp", "clip")
	both(maskedFill, "masked_fill")

	// In-place operations that changesInPlace does not recognize by name.
	for _, name := range []string{"iadd", "isub", "imul", "itruediv", "iand", "ior", "ixor", "ipow", "imod"} {
		functions["operator."+name] = inPlaceFirst
		inPlace["operator."+name] = true
	}
	inPlace["operator.setitem"] = true
	inPlace["torch.Tensor.requires_grad.__set__"] = true
	inPlace["torch.batch_norm"] = true // changes the operands that hold its running statistics
	inPlace["torch.instance_norm"] = true

	// Conversions and new tensors.
	for name, d := range map[string]Dtype{
		"float": torchFloat32, "double": torchFloat64, "half": torchFloat16, "bfloat16": torchBfloat16,
		"long": torchInt64, "int": torchInt32, "short": torchInt16, "char": torchInt8,
		"byte": torchUint8, "bool": torchBool,
	} {
		method(toDtype(d), name)
	}
	method(typeAs, "type_as")
	method(to, "to")
	function(filled, "torch.zeros", "torch.ones", "torch.empty", "torch.rand", "torch.randn")
	function(full, "torch.full")
	function(like, "torch.zeros_like", "torch.ones_like", "torch.empty_like", "torch.rand_like", "torch.randn_like")
	function(fullLike, "torch.full_like")
	method(newFilled, "new_zeros", "new_ones", "new_empty")
	method(newFull, "new_full")
	function(arange, "torch.arange")
	function(literal, "torch.tensor", "torch.as_tensor")

	// Views and concatenation.
	method(view, "view")
	method(reshapeMethod, "reshape")
	function(reshape, "torch.reshape")
	method(sizedAs, "view_as", "reshape_as")
	method(expand, "expand")
	method(expandAs, "expand_as")
	method(repeat, "repeat")
	both(flatten, "flatten")
	method(unflatten, "unflatten")
	both(transpose, "transpose", "swapaxes")
	both(t2, "t")
	method(permuteMethod, "permute")
	function(permute, "torch.permute")
	both(unsqueeze, "unsqueeze")
	both(squeeze, "squeeze")
	both(unbind, "unbind")
	both(chunk, "chunk")
	method(split("split_size"), "split")
	function(split("split_size_or_sections"), "torch.split", "torch.functional.split")
	both(repeatInterleave, "repeat_interleave")
	function(attribute, "builtins.getattr")
	both(narrow, "narrow")
	function(sample, "torch.func.one_of_none", "torch.func.first_slice")
	function(scalarSample(""), "torch.func.score")
	function(scalarSample(torchInt32), "torch.func.index")
	function(same(), "torch.func.stand_in", "torch.func.differentiated")
	function(slice, "torch.slice", "torch.ops.aten.slice.Tensor") // torch.slice is torch.ops.aten.slice
	both(sel, "select")
	function(getitem, "operator.getitem")
	function(tensorBesideInt, "builtins.max", "builtins.min")
	both(gather, "gather")
	both(indexSelect, "index_select")
	function(cat, "torch.cat", "torch.concat")
	function(stack, "torch.stack")

	// Sizes that depend on data.
	both(nonzero, "nonzero")
	both(maskedSelect, "masked_select")
	function(unique2, "torch._unique2")
	function(packed, "torch._pack_padded_sequence")
	function(padded, "torch._pad_packed_sequence")

	// Reductions.
	both(reduction(sumDtype), "sum")
	both(reduction(meanDtype), "mean")
	both(nonEmpty(reduction(ownDtype)), "amax", "amin")
	both(reduction(truthDtype), "any", "all")
	both(reduction(floatDtype), "logsumexp")
	both(argReduction, "argmax", "argmin")
	both(single, "max", "min")
	both(topk, "topk")
	both(sorted, "sort")
	both(norm, "norm")
	function(norm, "torch.functional.norm")

	// Products and windows.
	function(linear, "torch._C._nn.linear")
	both(matmul, "matmul")
	function(matmul, "operator.matmul")
	both(mm(2), "mm")
	both(mm(3), "bmm")
	function(groupedProduct(torchFloat16, torchBfloat16, torchFloat32), "torch._grouped_mm",
		"torch.nn.functional.grouped_mm")
	function(groupedProduct(), "torch.ops.transformers.grouped_mm_fallback")
	both(addmm(2, "mat1", "mat2"), "addmm")
	both(addmm(3, "batch1", "batch2"), "baddbmm")
	function(einsum, "torch.einsum")
	function(embedding, "torch.embedding")
	function(attention, "torch._C._nn.scaled_dot_product_attention")
	function(nativeAttention, "torch._native_multi_head_attention")
	function(encoderLayer, "torch._transformer_encoder_layer_fwd")
	function(conv(1), "torch.conv1d")
	function(conv(2), "torch.conv2d")
	function(conv(3), "torch.conv3d")
	function(pool(1, true), "torch.max_pool1d")
	function(pool(2, true), "torch.max_pool2d")
	function(pool(3, true), "torch.max_pool3d")
	function(pool(1, false, "count_include_pad"), "torch.avg_pool1d")
	function(pool(2, false, "count_include_pad", "divisor_override"), "torch._C._nn.avg_pool2d")
	function(pool(3, false, "count_include_pad", "divisor_override"), "torch._C._nn.avg_pool3d")
	function(adaptive(1), "torch.adaptive_avg_pool1d")
	function(adaptive(2), "torch._C._nn.adaptive_avg_pool2d")
	function(adaptive(3), "torch._C._nn.adaptive_avg_pool3d")
	function(pad, "torch._C._nn.pad")
	function(im2col, "torch._C._nn.im2col")
	function(upsample(1, false), "torch._C._nn.upsample_nearest1d")
	function(upsample(2, false), "torch._C._nn.upsample_nearest2d")
	function(upsample(3, false), "torch._C._nn.upsample_nearest3d")
	function(upsample(1, true), "torch._C._nn.upsample_linear1d")
	function(upsample(2, true), "torch._C._nn.upsample_bilinear2d", "torch._C._nn.upsample_bicubic2d")
	function(upsample(3, true), "torch._C._nn.upsample_trilinear3d")
}
