"""The allow-list: every function, method, operator and attribute that a graph may call.

A graph comes from a file that nobody vouches for, so it may name only what stands here: pure tensor
ops, their in-place forms, and the few state switches that Dynamo records. Nothing here reads or
writes files, imports, evaluates text, or hands out raw memory.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

from passnet.errors import GraphError
from passnet.graph.operators import ARITY, name_set
from passnet.graph.spec import Program

_TORCH = """
    Size _assert _assert_async _check _check_is_size _grouped_mm _int_mm _log_softmax _safe_softmax
    _scaled_mm _shape_as_tensor _softmax _weight_norm abs abs_ absolute acos acos_ acosh acosh_
    adaptive_avg_pool1d adaptive_max_pool1d add addbmm addcdiv addcmul addmm addmv addmv_ addr
    adjoint affine_grid_generator all allclose alpha_dropout alpha_dropout_ amax amin aminmax angle
    any arange arccos arccos_ arccosh arccosh_ arcsin arcsin_ arcsinh arcsinh_ arctan arctan2
    arctan_ arctanh arctanh_ argmax argmin argsort argwhere as_strided as_strided_
    as_strided_scatter as_tensor asin asin_ asinh asinh_ atan atan2 atan_ atanh atanh_ atleast_1d
    atleast_2d atleast_3d avg_pool1d baddbmm bartlett_window batch_norm bernoulli bilinear
    binary_cross_entropy_with_logits bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor blackman_window block_diag bmm broadcast_shapes
    broadcast_tensors broadcast_to bucketize cartesian_prod cat cdist ceil ceil_ celu celu_
    chain_matmul channel_shuffle chunk clamp clamp_ clamp_max clamp_max_ clamp_min clamp_min_ clip
    clip_ clone column_stack combinations complex concat concatenate conj conj_physical
    conj_physical_ constant_pad_nd conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d
    conv_transpose3d convolution copysign corrcoef cos cos_ cosh cosh_ cosine_embedding_loss
    cosine_similarity count_nonzero cov cross ctc_loss cummax cummin cumprod cumsum
    cumulative_trapezoid deg2rad deg2rad_ det detach detach_ diag diag_embed diagflat diagonal
    diagonal_scatter diff digamma dist div divide dot dropout dropout_ dsplit dstack einsum
    embedding embedding_bag empty empty_like empty_permuted empty_strided eq equal erf erf_ erfc
    erfc_ erfinv exp exp2 exp2_ exp_ expm1 expm1_ eye feature_alpha_dropout feature_alpha_dropout_
    feature_dropout feature_dropout_ fill fill_ fix fix_ flatten flip fliplr flipud float_power
    floor floor_ floor_divide fmax fmin fmod frac frac_ frexp frobenius_norm full full_like gather
    gcd gcd_ ge ger gradient greater greater_equal grid_sampler grid_sampler_2d grid_sampler_3d
    group_norm gru gru_cell gt hamming_window hann_window hardshrink heaviside hinge_embedding_loss
    histc histogram hsplit hstack hypot i0 i0_ igamma igammac imag index_add index_copy index_fill
    index_put index_put_ index_reduce index_select inner instance_norm inverse is_complex
    is_floating_point isclose isfinite isin isinf isnan isneginf isposinf isreal istft kaiser_window
    kl_div kron kthvalue layer_norm lcm lcm_ ldexp ldexp_ le lerp less less_equal lgamma linspace
    log log10 log10_ log1p log1p_ log2 log2_ log_ log_softmax logaddexp logaddexp2 logcumsumexp
    logical_and logical_not logical_or logical_xor logit logit_ logspace logsumexp lstm lstm_cell lt
    margin_ranking_loss masked_fill masked_scatter masked_select matmul matrix_exp matrix_power max
    max_pool1d max_pool1d_with_indices max_pool2d max_pool3d maximum mean median meshgrid min
    minimum mm mode moveaxis movedim msort mul multinomial multiply mv mvlgamma nan_to_num
    nan_to_num_ nanmean nanmedian nanquantile nansum narrow native_batch_norm native_group_norm
    native_layer_norm ne neg neg_ negative negative_ nextafter nonzero norm norm_except_dim normal
    not_equal nuclear_norm numel ones ones_like outer pairwise_distance pdist permute pixel_shuffle
    pixel_unshuffle poisson_nll_loss polar polygamma positive pow prelu prod quantile rad2deg
    rad2deg_ rand rand_like randint randint_like randn randn_like randperm range ravel real
    reciprocal reciprocal_ relu relu_ remainder renorm repeat_interleave reshape resolve_conj
    resolve_neg rms_norm roll rot90 round round_ row_stack rrelu rrelu_ rsqrt rsqrt_ rsub
    scalar_tensor scatter scatter_add scatter_reduce searchsorted select select_scatter selu selu_
    sgn sigmoid sigmoid_ sign signbit sin sin_ sinc sinc_ sinh sinh_ slice_scatter softmax sort
    split split_with_sizes sqrt sqrt_ square square_ squeeze stack std std_mean stft sub subtract
    sum swapaxes swapdims sym_float sym_int sym_ite sym_max sym_min sym_not sym_sum t take
    take_along_dim tan tan_ tanh tanh_ tensor tensor_split tensordot threshold threshold_ tile topk
    trace transpose trapezoid trapz tril tril_indices triplet_margin_loss triu triu_indices
    true_divide trunc trunc_ unbind unflatten unique_consecutive unravel_index unsqueeze vander var
    var_mean vdot view_as_complex view_as_real vsplit vstack where xlogy xlogy_ zero_ zeros
    zeros_like
"""

_FUNCTIONAL = """
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
    adaptive_max_pool1d_with_indices adaptive_max_pool2d adaptive_max_pool2d_with_indices
    adaptive_max_pool3d adaptive_max_pool3d_with_indices affine_grid alpha_dropout avg_pool1d
    avg_pool2d avg_pool3d batch_norm bilinear binary_cross_entropy binary_cross_entropy_with_logits
    celu celu_ channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d
    conv_transpose3d cosine_embedding_loss cosine_similarity cross_entropy ctc_loss dropout
    dropout1d dropout2d dropout3d elu elu_ embedding embedding_bag feature_alpha_dropout fold
    fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d
    fractional_max_pool3d_with_indices gaussian_nll_loss gelu glu grid_sample group_norm grouped_mm
    gumbel_softmax hardshrink hardsigmoid hardswish hardtanh hardtanh_ hinge_embedding_loss
    huber_loss instance_norm interpolate kl_div l1_loss layer_norm leaky_relu leaky_relu_ linear
    local_response_norm log_softmax logsigmoid lp_pool1d lp_pool2d lp_pool3d margin_ranking_loss
    max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d
    max_pool3d_with_indices max_unpool1d max_unpool2d max_unpool3d mish mse_loss
    multi_head_attention_forward multi_margin_loss multilabel_margin_loss
    multilabel_soft_margin_loss native_channel_shuffle nll_loss normalize one_hot pad
    pairwise_distance pdist pixel_shuffle pixel_unshuffle poisson_nll_loss prelu relu relu6 relu_
    rms_norm rrelu rrelu_ scaled_dot_product_attention scaled_grouped_mm scaled_mm selu selu_
    sigmoid silu smooth_l1_loss soft_margin_loss softmax softmin softplus softshrink softsign tanh
    tanhshrink threshold threshold_ triplet_margin_loss triplet_margin_with_distance_loss unfold
    upsample upsample_bilinear upsample_nearest
"""

_C_NN = """
    adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d avg_pool2d
    avg_pool3d binary_cross_entropy col2im conv_depthwise3d cross_entropy_loss elu elu_
    fractional_max_pool2d fractional_max_pool3d gelu gelu_ glu hardsigmoid hardsigmoid_ hardswish
    hardswish_ hardtanh hardtanh_ huber_loss im2col l1_loss leaky_relu leaky_relu_ linear
    log_sigmoid max_pool2d_with_indices max_pool3d_with_indices max_unpool2d max_unpool3d mish mish_
    mse_loss multi_margin_loss multilabel_margin_loss nll_loss nll_loss2d nll_loss_nd one_hot pad
    pad_sequence reflection_pad1d reflection_pad2d reflection_pad3d relu6 relu6_ replication_pad1d
    replication_pad2d replication_pad3d rrelu_with_noise rrelu_with_noise_
    scaled_dot_product_attention silu silu_ smooth_l1_loss soft_margin_loss softplus softshrink
    upsample_bicubic2d upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d
    upsample_nearest3d upsample_trilinear3d
"""

_TENSOR_METHODS = """
    __add__ __and__ __bool__ __eq__ __floordiv__ __ge__ __getitem__ __gt__ __iadd__ __iand__
    __imul__ __invert__ __ior__ __isub__ __itruediv__ __le__ __len__ __lshift__ __lt__ __matmul__
    __mod__ __mul__ __ne__ __neg__ __or__ __pow__ __radd__ __rmul__ __rpow__ __rshift__ __rsub__
    __rtruediv__ __setitem__ __sub__ __truediv__ __xor__ abs abs_ absolute absolute_ acos acos_
    acosh acosh_ add add_ addbmm addbmm_ addcdiv addcdiv_ addcmul addcmul_ addmm addmm_ addmv addmv_
    addr addr_ adjoint all allclose amax amin aminmax angle any arccos arccos_ arccosh arccosh_
    arcsin arcsin_ arcsinh arcsinh_ arctan arctan2 arctan2_ arctan_ arctanh arctanh_ argmax argmin
    argsort argwhere as_strided as_strided_ as_strided_scatter asin asin_ asinh asinh_ atan atan2
    atan2_ atan_ atanh atanh_ baddbmm baddbmm_ bernoulli bernoulli_ bfloat16 bincount bitwise_and
    bitwise_and_ bitwise_left_shift bitwise_left_shift_ bitwise_not bitwise_not_ bitwise_or
    bitwise_or_ bitwise_right_shift bitwise_right_shift_ bitwise_xor bitwise_xor_ bmm bool
    broadcast_to byte cauchy_ cdouble ceil ceil_ cfloat chalf char cholesky cholesky_inverse
    cholesky_solve chunk clamp clamp_ clamp_max clamp_max_ clamp_min clamp_min_ clip clip_ clone
    conj conj_physical conj_physical_ contiguous copy_ copysign copysign_ corrcoef cos cos_ cosh
    cosh_ count_nonzero cov cpu cross cuda cummax cummin cumprod cumprod_ cumsum cumsum_ deg2rad
    deg2rad_ dense_dim det detach detach_ diag diag_embed diagflat diagonal diagonal_scatter diff
    digamma digamma_ dim dist div div_ divide divide_ dot double dsplit element_size eq eq_ equal
    erf erf_ erfc erfc_ erfinv erfinv_ exp exp2 exp2_ exp_ expand expand_as expm1 expm1_
    exponential_ fill_ fill_diagonal_ fix fix_ flatten flip fliplr flipud float float_power
    float_power_ floor floor_ floor_divide floor_divide_ fmax fmin fmod fmod_ frac frac_ frexp
    gather gcd gcd_ ge ge_ geometric_ geqrf ger greater greater_ greater_equal greater_equal_ gt gt_
    half hardshrink heaviside heaviside_ histc histogram hsplit hypot hypot_ i0 i0_ igamma igamma_
    igammac igammac_ index index_add index_add_ index_copy index_copy_ index_fill index_fill_
    index_put index_put_ index_reduce index_reduce_ index_select indices inner int inverse
    is_complex is_conj is_contiguous is_floating_point is_neg is_nonzero is_same_size is_signed
    isclose isfinite isinf isnan isneginf isposinf isreal istft item kron kthvalue lcm lcm_ ldexp
    ldexp_ le le_ lerp lerp_ less less_ less_equal less_equal_ lgamma lgamma_ log log10 log10_ log1p
    log1p_ log2 log2_ log_ log_normal_ log_softmax logaddexp logaddexp2 logcumsumexp logdet
    logical_and logical_and_ logical_not logical_not_ logical_or logical_or_ logical_xor
    logical_xor_ logit logit_ logsumexp long lt lt_ lu lu_solve masked_fill masked_fill_
    masked_scatter masked_scatter_ masked_select matmul matrix_exp matrix_power max maximum mean
    median min minimum mm mode moveaxis movedim msort mul mul_ multinomial multiply multiply_ mv
    mvlgamma mvlgamma_ nan_to_num nan_to_num_ nanmean nanmedian nanquantile nansum narrow
    narrow_copy ndimension ne ne_ neg neg_ negative negative_ nelement new new_empty
    new_empty_strided new_full new_ones new_tensor new_zeros nextafter nextafter_ nonzero norm
    normal_ not_equal not_equal_ numel orgqr ormqr outer permute pinverse polygamma polygamma_
    positive pow pow_ prelu prod put put_ qr quantile rad2deg rad2deg_ random_ ravel reciprocal
    reciprocal_ relu relu_ remainder remainder_ renorm renorm_ repeat repeat_interleave
    requires_grad_ reshape reshape_as resolve_conj resolve_neg roll rot90 round round_ rsqrt rsqrt_
    scatter scatter_ scatter_add scatter_add_ scatter_reduce scatter_reduce_ select select_scatter
    sgn sgn_ short sigmoid sigmoid_ sign sign_ signbit sin sin_ sinc sinc_ sinh sinh_ size
    slice_scatter slogdet softmax sort split split_with_sizes sqrt sqrt_ square square_ squeeze
    squeeze_ std stft stride sub sub_ subtract subtract_ sum sum_to_size svd swapaxes swapaxes_
    swapdims swapdims_ t t_ take take_along_dim tan tan_ tanh tanh_ tensor_split tile to to_dense
    to_padded_tensor topk trace transpose transpose_ triangular_solve tril tril_ triu triu_
    true_divide true_divide_ trunc trunc_ type type_as unbind unflatten unfold uniform_ unique
    unique_consecutive unsqueeze unsqueeze_ values var vdot view view_as vsplit where xlogy xlogy_
    zero_
"""

_TORCH_FUNCTIONAL = """
    atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod
    cdist chain_matmul einsum istft meshgrid norm split stft tensordot unique unique_consecutive
    unravel_index
"""

_C_LINALG = """
    linalg_cholesky linalg_cholesky_ex linalg_cond linalg_cross linalg_det linalg_diagonal
    linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh linalg_householder_product linalg_inv
    linalg_inv_ex linalg_ldl_factor linalg_ldl_factor_ex linalg_ldl_solve linalg_lstsq linalg_lu
    linalg_lu_factor linalg_lu_factor_ex linalg_lu_solve linalg_matmul linalg_matrix_exp
    linalg_matrix_norm linalg_matrix_power linalg_matrix_rank linalg_multi_dot linalg_norm
    linalg_pinv linalg_qr linalg_slogdet linalg_solve linalg_solve_ex linalg_solve_triangular
    linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve linalg_vander linalg_vecdot
    linalg_vector_norm
"""

_C_FFT = """
    fft_fft fft_fft2 fft_fftfreq fft_fftn fft_fftshift fft_hfft fft_hfft2 fft_hfftn fft_ifft
    fft_ifft2 fft_ifftn fft_ifftshift fft_ihfft fft_ihfft2 fft_ihfftn fft_irfft fft_irfft2
    fft_irfftn fft_rfft fft_rfft2 fft_rfftfreq fft_rfftn
"""

_C_SPECIAL = """
    special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1
    special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v
    special_chebyshev_polynomial_w special_digamma special_entr special_erf special_erfc
    special_erfcx special_erfinv special_exp2 special_expit special_expm1 special_gammainc
    special_gammaincc special_gammaln special_hermite_polynomial_h special_hermite_polynomial_he
    special_i0 special_i0e special_i1 special_i1e special_laguerre_polynomial_l
    special_legendre_polynomial_p special_log1p special_log_ndtr special_log_softmax special_logit
    special_logsumexp special_modified_bessel_i0 special_modified_bessel_i1
    special_modified_bessel_k0 special_modified_bessel_k1 special_multigammaln special_ndtr
    special_ndtri special_polygamma special_psi special_round special_scaled_modified_bessel_k0
    special_scaled_modified_bessel_k1 special_shifted_chebyshev_polynomial_t
    special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v
    special_shifted_chebyshev_polynomial_w special_sinc special_softmax special_spherical_bessel_j0
    special_xlog1py special_xlogy special_zeta
"""

_ATEN = """
    _adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d
    _adaptive_avg_pool3d_backward _assert_scalar _cdist_backward _cdist_forward _embedding_bag
    _embedding_bag_backward _embedding_bag_dense_backward _fft_c2r _fft_r2c _fused_rms_norm_backward
    _local_scalar_dense _log_softmax _log_softmax_backward_data _masked_softmax_backward
    _native_batch_norm_legit _native_batch_norm_legit_no_training _pdist_forward _prelu_kernel
    _prelu_kernel_backward _reshape_alias _scaled_dot_product_efficient_attention
    _scaled_dot_product_efficient_attention_backward _scaled_dot_product_flash_attention
    _scaled_dot_product_flash_attention_backward _scaled_dot_product_flash_attention_for_cpu
    _scaled_dot_product_flash_attention_for_cpu_backward _slow_conv2d_backward _softmax
    _softmax_backward_data _to_copy _unsafe_view _upsample_bicubic2d_aa_backward
    _upsample_bilinear2d_aa_backward _upsample_nearest_exact1d_backward
    _upsample_nearest_exact2d_backward _upsample_nearest_exact3d_backward _weight_norm_interface
    _weight_norm_interface_backward abs acos acosh adaptive_avg_pool1d adaptive_avg_pool3d_backward
    adaptive_max_pool2d_backward adaptive_max_pool3d_backward add add_ addcdiv addcmul addmm alias
    amax amin any arange argmax argmin as_strided asin asinh atan atan2 atanh avg_pool1d avg_pool2d
    avg_pool2d_backward avg_pool3d avg_pool3d_backward batch_norm_backward bernoulli
    binary_cross_entropy_backward bitwise_and bitwise_not bitwise_or bitwise_xor bmm cat ceil clamp
    clone col2im constant_pad_nd convolution convolution_backward copy copy_ cos cosh cumprod cumsum
    detach diagonal div dot elu elu_backward embedding embedding_backward embedding_dense_backward
    empty empty_strided eq erf exp expand expm1 fill fill_ flip floor fmod
    fractional_max_pool2d_backward full full_like gather ge gelu gelu_backward glu glu_backward
    grid_sampler_2d grid_sampler_2d_backward grid_sampler_3d_backward gt hardshrink_backward
    hardsigmoid hardsigmoid_backward hardswish hardswish_backward hardtanh hardtanh_backward
    huber_loss_backward im2col index index_put index_select isinf isnan le leaky_relu
    leaky_relu_backward lift_fresh_copy linear_backward log log10 log1p log2 log_sigmoid_backward
    log_sigmoid_forward logical_and logical_not logical_or logical_xor logit_backward logsumexp lt
    masked_fill masked_scatter max max_pool2d_with_indices max_pool2d_with_indices_backward
    max_pool3d_with_indices max_pool3d_with_indices_backward maximum mean min minimum mish
    mish_backward mm mse_loss_backward mul mul_ mv native_batch_norm native_batch_norm_backward
    native_dropout native_dropout_backward native_group_norm native_group_norm_backward
    native_layer_norm native_layer_norm_backward ne neg new_empty new_empty_strided new_full
    new_ones new_zeros nll_loss2d_backward nll_loss_backward nonzero ones_like permute pow prelu
    prod rand randn randperm reciprocal reflection_pad1d reflection_pad1d_backward reflection_pad2d
    reflection_pad2d_backward reflection_pad3d reflection_pad3d_backward relu remainder repeat
    replication_pad1d_backward replication_pad2d replication_pad2d_backward replication_pad3d
    replication_pad3d_backward reshape roll round rrelu_with_noise_backward rsqrt rsub scalar_tensor
    scaled_dot_product_attention scatter scatter_add scatter_reduce select select_backward
    select_scatter sgn sigmoid sigmoid_backward sign silu silu_backward sin sinh slice
    slice_backward slice_scatter smooth_l1_loss_backward softplus softplus_backward
    softshrink_backward sort split split_with_sizes sqrt square squeeze stack sub sum
    sym_constrain_range_for_size sym_is_contiguous sym_numel sym_size sym_storage_offset sym_stride
    t tan tanh tanh_backward threshold_backward topk transpose tril triu trunc unbind unfold
    unfold_backward unsqueeze upsample_bicubic2d upsample_bicubic2d_backward upsample_bilinear2d
    upsample_bilinear2d_backward upsample_linear1d upsample_linear1d_backward upsample_nearest1d
    upsample_nearest1d_backward upsample_nearest2d upsample_nearest2d_backward upsample_nearest3d
    upsample_nearest3d_backward upsample_trilinear3d upsample_trilinear3d_backward
    value_selecting_reduction_backward var view where zero_ zeros_like
"""

_PRIVATE = """
    torch._C._log_api_usage_once torch._C._set_grad_enabled torch._C._functorch._add_batch_dim
    torch._C._functorch._remove_batch_dim torch._C._functorch._vmap_increment_nesting
    torch._C._functorch._vmap_decrement_nesting torch._functorch.predispatch._add_batch_dim
    torch._functorch.predispatch._remove_batch_dim
    torch._functorch.predispatch._vmap_increment_nesting
    torch._functorch.predispatch._vmap_decrement_nesting
    torch._functorch.predispatch.lazy_load_decompositions
    torch._functorch.vmap.lazy_load_decompositions torch.autograd.function.FunctionCtx
    torch.amp.autocast_mode._enter_autocast torch.amp.autocast_mode._exit_autocast
"""

ATTRIBUTES = name_set("shape dtype device ndim T mT H mH real imag is_cuda requires_grad")
"""Attributes of a value that a graph may read."""


def _prefixed(prefix: str, names: str) -> set[str]:
    return {prefix + name for name in names.split()}


ALLOWED: frozenset[str] = frozenset(
    _prefixed("torch.", _TORCH)
    | _prefixed("torch.nn.functional.", _FUNCTIONAL)
    | _prefixed("torch._C._nn.", _C_NN)
    | _prefixed("Tensor.", _TENSOR_METHODS)
    | _prefixed("torch.functional.", _TORCH_FUNCTIONAL)
    | _prefixed("torch._C._linalg.", _C_LINALG)
    | _prefixed("torch._C._fft.", _C_FFT)
    | _prefixed("torch._C._special.", _C_SPECIAL)
    | name_set(_PRIVATE)
    | {"operator." + name for name in ARITY}
    | {"getattr"}
)
"""Every allowed target except the aten ops, which are matched without their overload."""

_ATEN_NAMES = name_set(_ATEN) | name_set(_TORCH) - {"Size"}
_ATEN_PREFIX = "torch.ops.aten."


def is_allowed(target: str) -> bool:
    """Whether a graph may call `target`.

    Examples:
        >>> is_allowed("torch.nn.functional.relu"), is_allowed("torch.load")
        (True, False)
        >>> is_allowed("torch.ops.aten.sym_size.int")
        True
    """
    if target.startswith(_ATEN_PREFIX):
        name, _, overload = target.removeprefix(_ATEN_PREFIX).partition(".")
        is_plain = not overload or (overload.isidentifier() and not overload.startswith("_"))
        return name in _ATEN_NAMES and is_plain
    return target in ALLOWED


def check_targets(program: Program, where: str = "model.py") -> None:
    """Raise a GraphError, naming line and target, if a program calls what is not allowed."""
    for op in program.ops:
        if not is_allowed(op.target):
            raise GraphError(
                f"{where}:{op.line}: {op.target} is not on the list of allowed targets "
                "(passnet.graph.targets); a graph may only call tensor ops"
            )
        if op.target == "getattr" and op.args[1] not in ATTRIBUTES:
            raise GraphError(f"{where}:{op.line}: attribute {op.args[1]} may not be read")


@cache
def resolve(target: str) -> Callable[..., Any]:
    """The callable that an allowed function or operator names (methods have none of their own).

    Raises:
        GraphError: not allowed, or this version of torch does not have it.
    """
    if not is_allowed(target) or target.startswith("Tensor."):
        raise GraphError(f"{target} is not an allowed function")
    if target == "getattr":
        return getattr
    if target.startswith("operator."):
        return getattr(operator, target.removeprefix("operator."))
    import torch

    value: Any = torch
    for part in target.split(".")[1:]:
        try:
            value = getattr(value, part)
        except AttributeError as cause:
            raise GraphError(f"torch {torch.__version__} has no {target}") from cause
    if target.startswith(_ATEN_PREFIX) and not isinstance(
        value, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)
    ):
        raise GraphError(f"{target} is no op of torch {torch.__version__}")
    return value
