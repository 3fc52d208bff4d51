"""The allow-list: every function, method, operator and attribute that a graph may call.

These are pure tensor ops, their in-place forms, and the state switches that Dynamo records. None
reads or writes files, imports, evaluates text, or hands out raw memory.
"""

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

from passnet.errors import GraphError
from passnet.graph.fx.operators import ARITY, name_set
from passnet.graph.spec import Program

_TORCH_AND_METHODS = """
    abs abs_ absolute acos acos_ acosh acosh_ add addbmm addcdiv addcmul addmm addmv addmv_ addr
    adjoint all allclose amax amin aminmax angle any arccos arccos_ arccosh arccosh_ arcsin arcsin_
    arcsinh arcsinh_ arctan arctan2 arctan_ arctanh arctanh_ argmax argmin argsort argwhere
    as_strided as_strided_ as_strided_scatter asin asin_ asinh asinh_ atan atan2 atan_ atanh atanh_
    baddbmm bernoulli bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor bmm broadcast_to ceil ceil_ chunk clamp clamp_ clamp_max
    clamp_max_ clamp_min clamp_min_ clip clip_ clone conj conj_physical conj_physical_ copysign
    corrcoef cos cos_ cosh cosh_ count_nonzero cov cross cummax cummin cumprod cumsum deg2rad
    deg2rad_ det detach detach_ diag diag_embed diagflat diagonal diagonal_scatter diff digamma dist
    div divide dot dsplit eq equal erf erf_ erfc erfc_ erfinv exp exp2 exp2_ exp_ expm1 expm1_ fill_
    fix fix_ flatten flip fliplr flipud float_power floor floor_ floor_divide fmax fmin fmod frac
    frac_ frexp gather gcd gcd_ ge ger greater greater_equal gt hardshrink heaviside histc histogram
    hsplit hypot i0 i0_ igamma igammac index_add index_copy index_fill index_put index_put_
    index_reduce index_select inner inverse is_complex is_floating_point isclose isfinite isinf
    isnan isneginf isposinf isreal istft kron kthvalue lcm lcm_ ldexp ldexp_ le lerp less less_equal
    lgamma log log10 log10_ log1p log1p_ log2 log2_ log_ log_softmax logaddexp logaddexp2
    logcumsumexp logical_and logical_not logical_or logical_xor logit logit_ logsumexp lt
    masked_fill masked_scatter masked_select matmul matrix_exp matrix_power max maximum mean median
    min minimum mm mode moveaxis movedim msort mul multinomial multiply mv mvlgamma nan_to_num
    nan_to_num_ nanmean nanmedian nanquantile nansum narrow ne neg neg_ negative negative_ nextafter
    nonzero norm not_equal numel outer permute polygamma positive pow prelu prod quantile rad2deg
    rad2deg_ ravel reciprocal reciprocal_ relu relu_ remainder renorm repeat_interleave reshape
    resolve_conj resolve_neg roll rot90 round round_ rsqrt rsqrt_ scatter scatter_add scatter_reduce
    select select_scatter sgn sigmoid sigmoid_ sign signbit sin sin_ sinc sinc_ sinh sinh_
    slice_scatter softmax sort split split_with_sizes sqrt sqrt_ square square_ squeeze std stft sub
    subtract sum swapaxes swapdims t take take_along_dim tan tan_ tanh tanh_ tensor_split tile topk
    trace transpose tril triu true_divide trunc trunc_ unbind unflatten unique_consecutive unsqueeze
    var vdot vsplit where xlogy xlogy_ zero_
"""
"""Functions of torch that are also methods of tensors."""

_TORCH = """
    Size _assert _assert_async _check _check_is_size _grouped_mm _int_mm _log_softmax
    _native_multi_head_attention _safe_softmax _scaled_mm _shape_as_tensor _softmax
    _transformer_encoder_layer_fwd _weight_norm adaptive_avg_pool1d adaptive_max_pool1d
    affine_grid_generator alpha_dropout alpha_dropout_ arange as_tensor atleast_1d atleast_2d
    atleast_3d avg_pool1d bartlett_window batch_norm bilinear binary_cross_entropy_with_logits
    blackman_window block_diag broadcast_shapes broadcast_tensors bucketize cartesian_prod cat cdist
    celu celu_ chain_matmul channel_shuffle column_stack combinations complex concat concatenate
    constant_pad_nd conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d
    convolution cosine_embedding_loss cosine_similarity ctc_loss cumulative_trapezoid dropout
    dropout_ dstack einsum embedding embedding_bag empty empty_like empty_permuted empty_strided eye
    feature_alpha_dropout feature_alpha_dropout_ feature_dropout feature_dropout_ fill
    frobenius_norm full full_like gradient grid_sampler grid_sampler_2d grid_sampler_3d group_norm
    gru gru_cell hamming_window hann_window hinge_embedding_loss hstack imag instance_norm isin
    kaiser_window kl_div layer_norm linspace logspace lstm lstm_cell margin_ranking_loss max_pool1d
    max_pool1d_with_indices max_pool2d max_pool3d meshgrid native_batch_norm native_group_norm
    native_layer_norm norm_except_dim normal nuclear_norm ones ones_like pairwise_distance pdist
    pixel_shuffle pixel_unshuffle poisson_nll_loss polar rand rand_like randint randint_like randn
    randn_like randperm range real rms_norm rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell row_stack
    rrelu rrelu_ rsub scalar_tensor searchsorted selu selu_ stack std_mean sym_float sym_int sym_ite
    sym_max sym_min sym_not sym_sum tensor tensordot threshold threshold_ trapezoid trapz
    tril_indices triplet_margin_loss triu_indices unravel_index vander var_mean view_as_complex
    view_as_real vstack zeros zeros_like
"""
"""Functions of torch that are not methods of tensors."""

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
    __rtruediv__ __setitem__ __sub__ __truediv__ __xor__ absolute_ add_ addbmm_ addcdiv_ addcmul_
    addmm_ addr_ arctan2_ atan2_ baddbmm_ bernoulli_ bfloat16 bitwise_and_ bitwise_left_shift_
    bitwise_not_ bitwise_or_ bitwise_right_shift_ bitwise_xor_ bool byte cauchy_ cdouble cfloat
    chalf char cholesky cholesky_inverse cholesky_solve contiguous copy_ copysign_ cpu cuda cumprod_
    cumsum_ dense_dim digamma_ dim div_ divide_ double element_size eq_ erfinv_ expand expand_as
    exponential_ fill_diagonal_ float float_power_ floor_divide_ fmod_ ge_ geometric_ geqrf greater_
    greater_equal_ gt_ half heaviside_ hypot_ igamma_ igammac_ index index_add_ index_copy_
    index_fill_ index_reduce_ indices int is_conj is_contiguous is_neg is_nonzero is_same_size
    is_signed item le_ lerp_ less_ less_equal_ lgamma_ log_normal_ logdet logical_and_ logical_not_
    logical_or_ logical_xor_ long lt_ lu lu_solve masked_fill_ masked_scatter_ mul_ multiply_
    mvlgamma_ narrow_copy ndimension ne_ nelement new new_empty new_empty_strided new_full new_ones
    new_tensor new_zeros nextafter_ normal_ not_equal_ orgqr ormqr pinverse polygamma_ pow_ put put_
    qr random_ remainder_ renorm_ repeat requires_grad_ reshape_as scatter_ scatter_add_
    scatter_reduce_ sgn_ short sign_ size slogdet squeeze_ stride sub_ subtract_ sum_to_size svd
    swapaxes_ swapdims_ t_ to to_dense to_padded_tensor transpose_ triangular_solve tril_ triu_
    true_divide_ type type_as unfold uniform_ unique unsqueeze_ values view view_as
"""
"""Methods of tensors that are not functions of torch."""

_TORCH_FUNCTIONAL = """
    atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod
    cdist chain_matmul einsum istft meshgrid norm split stft tensordot unique unique_consecutive
    unravel_index
"""

_C_LINALG = """
    cholesky cholesky_ex cond cross det diagonal eig eigh eigvals eigvalsh householder_product inv
    inv_ex ldl_factor ldl_factor_ex ldl_solve lstsq lu lu_factor lu_factor_ex lu_solve matmul
    matrix_exp matrix_norm matrix_power matrix_rank multi_dot norm pinv qr slogdet solve solve_ex
    solve_triangular svd svdvals tensorinv tensorsolve vander vecdot vector_norm
"""

_C_FFT = """
    fft fft2 fftfreq fftn fftshift hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ihfft ihfft2 ihfftn
    irfft irfft2 irfftn rfft rfft2 rfftfreq rfftn
"""

_C_SPECIAL = """
    airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t chebyshev_polynomial_u
    chebyshev_polynomial_v chebyshev_polynomial_w digamma entr erf erfc erfcx erfinv exp2 expit
    expm1 gammainc gammaincc gammaln hermite_polynomial_h hermite_polynomial_he i0 i0e i1 i1e
    laguerre_polynomial_l legendre_polynomial_p log1p log_ndtr log_softmax logit logsumexp
    modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 multigammaln ndtr
    ndtri polygamma psi round scaled_modified_bessel_k0 scaled_modified_bessel_k1
    shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
    shifted_chebyshev_polynomial_w sinc softmax spherical_bessel_j0 xlog1py xlogy zeta
"""

_ATEN = """
    _adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d
    _adaptive_avg_pool3d_backward _assert_scalar _cdist_backward _cdist_forward _embedding_bag
    _embedding_bag_backward _embedding_bag_dense_backward _fft_c2r _fft_r2c _fused_rms_norm_backward
    _local_scalar_dense _log_softmax_backward_data _masked_softmax_backward _native_batch_norm_legit
    _native_batch_norm_legit_no_training _pdist_forward _prelu_kernel _prelu_kernel_backward
    _reshape_alias _scaled_dot_product_efficient_attention
    _scaled_dot_product_efficient_attention_backward _scaled_dot_product_flash_attention
    _scaled_dot_product_flash_attention_backward _scaled_dot_product_flash_attention_for_cpu
    _scaled_dot_product_flash_attention_for_cpu_backward _slow_conv2d_backward
    _softmax_backward_data _to_copy _unsafe_index _unsafe_index_put _unsafe_view
    _upsample_bicubic2d_aa_backward
    _upsample_bilinear2d_aa_backward _upsample_nearest_exact1d_backward
    _upsample_nearest_exact2d_backward _upsample_nearest_exact3d_backward _weight_norm_interface
    _weight_norm_interface_backward adaptive_avg_pool3d_backward adaptive_max_pool2d_backward
    adaptive_max_pool3d_backward add_ alias avg_pool2d avg_pool2d_backward avg_pool3d
    avg_pool3d_backward batch_norm_backward binary_cross_entropy_backward col2im
    convolution_backward copy copy_ elu elu_backward embedding_backward embedding_dense_backward
    expand fractional_max_pool2d_backward gelu gelu_backward glu glu_backward
    grid_sampler_2d_backward grid_sampler_3d_backward hardshrink_backward hardsigmoid
    hardsigmoid_backward hardswish hardswish_backward hardtanh hardtanh_backward huber_loss_backward
    im2col index leaky_relu leaky_relu_backward lift_fresh_copy linear_backward log_sigmoid_backward
    log_sigmoid_forward logit_backward max_pool2d_with_indices max_pool2d_with_indices_backward
    max_pool3d_with_indices max_pool3d_with_indices_backward mish mish_backward mse_loss_backward
    mul_ native_batch_norm_backward native_dropout native_dropout_backward
    native_group_norm_backward native_layer_norm_backward new_empty new_empty_strided new_full
    new_ones new_zeros nll_loss2d_backward nll_loss_backward reflection_pad1d
    reflection_pad1d_backward reflection_pad2d reflection_pad2d_backward reflection_pad3d
    reflection_pad3d_backward repeat replication_pad1d_backward replication_pad2d
    replication_pad2d_backward replication_pad3d replication_pad3d_backward
    rrelu_with_noise_backward scaled_dot_product_attention select_backward sigmoid_backward silu
    silu_backward slice slice_backward smooth_l1_loss_backward softplus softplus_backward
    softshrink_backward sym_constrain_range_for_size sym_is_contiguous sym_numel sym_size
    sym_storage_offset sym_stride tanh_backward threshold_backward unfold unfold_backward
    upsample_bicubic2d upsample_bicubic2d_backward upsample_bilinear2d upsample_bilinear2d_backward
    upsample_linear1d upsample_linear1d_backward upsample_nearest1d upsample_nearest1d_backward
    upsample_nearest2d upsample_nearest2d_backward upsample_nearest3d upsample_nearest3d_backward
    upsample_trilinear3d upsample_trilinear3d_backward value_selecting_reduction_backward view
"""
"""Names of aten ops that are not functions of torch."""

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


def _prefixed(prefix: str, names: str) -> set[str]:
    return {prefix + name for name in names.split()}


ALLOWED: frozenset[str] = frozenset(
    _prefixed("torch.", _TORCH_AND_METHODS + _TORCH)
    | _prefixed("torch.nn.functional.", _FUNCTIONAL)
    | _prefixed("torch._C._nn.", _C_NN)
    | _prefixed("Tensor.", _TORCH_AND_METHODS + _TENSOR_METHODS)
    | _prefixed("torch.functional.", _TORCH_FUNCTIONAL)
    | _prefixed("torch._C._linalg.linalg_", _C_LINALG)
    | _prefixed("torch._C._fft.fft_", _C_FFT)
    | _prefixed("torch._C._special.special_", _C_SPECIAL)
    | name_set(_PRIVATE)
    | {"operator." + name for name in ARITY}
    | {"getattr"}
)
"""Every allowed target except the aten ops, which are matched without their overload."""

_ATEN_NAMES = name_set(_ATEN + _TORCH_AND_METHODS + _TORCH) - {"Size"}
_ATEN_PREFIX = "torch.ops.aten."


def is_allowed(target: str) -> bool:
    """Return whether a graph may call `target`.

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
    """Raise a GraphError with line and target if a program calls a target that is not allowed."""
    for op in program.ops:
        if not is_allowed(op.target):
            raise GraphError(
                f"{where}:{op.line}: {op.target} is not on the list of allowed targets "
                "(passnet.graph.fx.targets); a graph may only call tensor ops"
            )
        if op.target == "getattr" and op.args[1] not in ATTRIBUTES:
            raise GraphError(f"{where}:{op.line}: attribute {op.args[1]} may not be read")


@cache
def resolve(target: str) -> Callable[..., Any]:
    """Return the callable of an allowed function; raise GraphError if torch lacks it."""
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
