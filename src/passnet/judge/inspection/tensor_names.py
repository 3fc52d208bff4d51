"""The attributes of torch's tensors: those that describe, move or allocate, and those that
compute.

Every public attribute of `torch.Tensor` (torch 2.13) is in one of the two; a name with a final `_`
is the same op, done in place.
"""

_PLAIN = """
    H T adjoint align_as align_to as_strided as_subclass bfloat16 bool broadcast_to byte
    ccol_indices cdouble cfloat chalf char chunk clone coalesce col_indices conj const_data_ptr
    contiguous copy cpu crow_indices cuda data data_ptr dense_dim detach device diagonal dim
    dim_order double dsplit dtype element_size expand expand_as fill flatten float get_device
    grad grad_dtype grad_fn half has_names hsplit imag indices int ipu is_coalesced is_complex
    is_conj is_contiguous is_cpu is_cuda is_distributed is_floating_point is_inference is_ipu
    is_leaf is_maia is_meta is_mkldnn is_mps is_mtia is_neg is_nested is_pinned is_quantized
    is_same_size is_set_to is_shared is_signed is_sparse is_sparse_csr is_vulkan is_xla is_xpu
    item itemsize layout long mH mT module_load moveaxis movedim mtia name names narrow nbytes
    ndim ndimension nelement new new_empty new_empty_strided new_full new_ones new_tensor
    new_zeros numel numpy output_nr permute pin_memory q_per_channel_axis q_per_channel_scales
    q_per_channel_zero_points q_scale q_zero_point qscheme ravel real record_stream refine_names
    register_hook register_post_accumulate_grad_hook rename requires_grad reshape reshape_as
    resize resolve_conj resolve_neg retain_grad retains_grad row_indices select set shape
    share_memory short size sparse_dim split split_with_sizes squeeze storage storage_offset
    storage_type stride swapaxes swapdims t tensor_split to tolist transpose type type_as unbind
    unflatten unfold unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze untyped_storage
    values view view_as volatile vsplit xpu zero
"""
_COMPUTING = """
    __abs__ __add__ __and__ __contains__ __div__ __eq__ __floordiv__ __ge__ __gt__ __iadd__
    __iand__ __idiv__ __ifloordiv__ __ilshift__ __imatmul__ __imod__ __imul__ __invert__ __ior__
    __ipow__ __irshift__ __isub__ __itruediv__ __ixor__ __le__ __lshift__ __lt__ __matmul__
    __mod__ __mul__ __ne__ __neg__ __or__ __pos__ __pow__ __radd__ __rand__ __rdiv__
    __reversed__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rmul__ __ror__ __rpow__
    __rrshift__ __rshift__ __rsub__ __rtruediv__ __rxor__ __sub__ __torch_dispatch__
    __torch_function__ __truediv__ __xor__ _addmm_activation _conj_physical _is_all_true
    _is_any_true _philox_normal_ _philox_uniform_ _sparse_mask_projection _to_dense _to_sparse
    abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr all allclose amax amin
    aminmax angle any apply arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin
    argsort argwhere as_strided_scatter asin asinh atan atan2 atanh backward baddbmm bernoulli
    bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift
    bitwise_xor bmm cauchy ceil cholesky cholesky_inverse cholesky_solve clamp clamp_max
    clamp_min clip conj_physical copysign corrcoef cos cosh count_nonzero cov cross cummax
    cummin cumprod cumsum deg2rad dequantize det diag diag_embed diagflat diagonal_scatter diff
    digamma dist div divide dot eig eq equal erf erfc erfinv exp exp2 expm1 exponential
    fill_diagonal fix flip fliplr flipud float_power floor floor_divide fmax fmin fmod frac
    frexp gather gcd ge geometric geqrf ger greater greater_equal gt hardshrink hash_tensor
    heaviside histc histogram hypot i0 igamma igammac index index_add index_copy index_fill
    index_put index_reduce index_select inner int_repr inverse is_nonzero isclose isfinite isinf
    isnan isneginf isposinf isreal istft kron kthvalue lcm ldexp le lerp less less_equal lgamma
    log log10 log1p log2 log_normal log_softmax logaddexp logaddexp2 logcumsumexp logdet
    logical_and logical_not logical_or logical_xor logit logsumexp lstsq lt lu lu_solve map map2
    masked_fill masked_scatter masked_select matmul matrix_exp matrix_power max maximum mean
    median min minimum mm mode msort mul multinomial multiply mv mvlgamma nan_to_num nanmean
    nanmedian nanquantile nansum narrow_copy ne neg negative nextafter nonzero nonzero_static
    norm normal not_equal orgqr ormqr outer pinverse polygamma positive pow prelu prod put qr
    quantile rad2deg random reciprocal reinforce relu remainder renorm repeat repeat_interleave
    resize_as resize_as_sparse roll rot90 round rsqrt scatter scatter_add scatter_reduce
    select_scatter sgn sigmoid sign signbit sin sinc sinh slice_inverse slice_scatter slogdet
    smm softmax solve sort sparse_mask sparse_resize sparse_resize_and_clear sqrt square
    sspaddmm std stft sub subtract sum sum_to_size svd symeig take take_along_dim tan tanh tile
    to_dense to_mkldnn to_padded_tensor to_sparse to_sparse_bsc to_sparse_bsr to_sparse_coo
    to_sparse_csc to_sparse_csr topk trace triangular_solve tril triu true_divide trunc uniform
    unique unique_consecutive var vdot where xlogy
"""

PLAIN = frozenset(_PLAIN.split())
"""The white list: attributes that code with kernels of its own may use."""

COMPUTING = frozenset(_COMPUTING.split())
"""All others, and the methods behind operators."""
