// exp, tanh, erf, sin, cos and pow of a register of floats, for `inductor_vector.h`.
//
// With AVX-512, a table of 32 entries is two registers, and looking all lanes up in it is one
// instruction. So the range of the first three is taken in 32 pieces, each with a polynomial of its
// own of the distance from its middle. Elsewhere they are those of `inductor_kernel.h`, lane by lane.
// All polynomials were fitted at Chebyshev nodes with weights that make errors relative.
#pragma once
#include "inductor_registers.h"

namespace at::vec::pieces {

using Floats = Register<float>;

INLINE Floats magnitude_of(Floats x) {
  return as<Floats>(as<Register<uint32_t>>(x) & 0x7FFFFFFFu);
}

// Makes a whole number of what is below 2^22, with its bits in the lowest places.
constexpr float to_whole = 12582912.0f;

#if PASSNET_VECTOR_BYTES == 64 && defined(__AVX512F__)
constexpr float erf_pieces[6][32] = {
    {0.0f, 0.140316203f, 0.276326388f, 0.404116899f, 0.520499885f, 0.623240888f, 0.711155653f,
     0.784075081f, 0.842700779f, 0.888388216f, 0.92290014f, 0.948170066f, 0.966105163f,
     0.978443742f, 0.986671686f, 0.99199003f, 0.995322287f, 0.997345984f, 0.998537302f,
     0.999217033f, 0.999593019f, 0.999794602f, 0.999899387f, 0.999952137f, 0.999977887f,
     0.999990106f, 0.999995708f, 0.999998212f, 0.999999285f, 0.999999702f, 0.999999881f,
     0.99999994f},
    {1.12837923f, 1.11088526f, 1.06001413f, 0.980352819f, 0.87878269f, 0.763499618f,
     0.642931163f, 0.524745107f, 0.415107548f, 0.318273991f, 0.236521184f, 0.170359835f,
     0.118930355f, 0.0804723203f, 0.0527750552f, 0.0335458852f, 0.0206670444f, 0.01234088f,
     0.00714237802f, 0.00400653621f, 0.00217834278f, 0.00114793377f, 0.000586335897f,
     0.000290286931f, 0.000139311684f, 6.48173227e-05f, 2.92476634e-05f, 1.28103775e-05f,
     5.45806279e-06f, 2.27455575e-06f, 9.4006765e-07f, 3.98457814e-07f},
    {4.76393636e-09f, -0.138858899f, -0.265001148f, -0.367621034f, -0.439398408f, -0.477192998f,
     -0.482217938f, -0.459172606f, -0.41509369f, -0.358042747f, -0.295663863f, -0.234237775f,
     -0.178412586f, -0.130776286f, -0.0923716128f, -0.0628699288f, -0.0413565673f,
     -0.0262378938f, -0.0160892494f, -0.0094862869f, -0.00541651109f, -0.0029907627f,
     -0.00162175589f, -0.000826524105f, -0.000394380186f, -0.000204788186f, -0.000106377491f,
     -7.08296357e-05f, -4.74083317e-05f, -5.08022231e-06f, 2.30836008e-06f, 1.61841253e-05f},
    {-0.376127064f, -0.358667225f, -0.309119672f, -0.234825641f, -0.146511599f, -0.0556940138f,
     0.0267523471f, 0.092915602f, 0.138378188f, 0.162475631f, 0.167531759f, 0.157936022f,
     0.138745591f, 0.114838205f, 0.0901565105f, 0.0674430132f, 0.0482224301f, 0.0330367386f,
     0.0217242092f, 0.0137308137f, 0.00835018139f, 0.0048904242f, 0.0027603698f, 0.00150252227f,
     0.000789101876f, 0.000400014222f, 0.000195806046f, 9.25809218e-05f, 4.22944649e-05f,
     1.86734233e-05f, 7.9694255e-06f, 3.28838746e-06f},
    {2.88315096e-05f, 0.0682533011f, 0.126324818f, 0.164068162f, 0.18433328f, 0.177475005f,
     0.154598534f, 0.116590351f, 0.0663755909f, 0.0248724651f, -0.00352022774f, -0.0318250991f,
     -0.0410065725f, -0.0478437096f, -0.0449178815f, -0.0480797105f, -0.0298152789f,
     -0.0235727187f, -0.0151975621f, -0.019105237f, -0.0146138836f, -0.0100129629f,
     -0.00132065045f, -0.0035007163f, -0.00583543954f, -6.43671156e-05f, 0.00207024324f,
     0.00554941641f, 0.0057708798f, -0.00063600071f, -0.00116361259f, -0.00359016145f},
    {0.112425871f, 0.0935802832f, 0.070373565f, 0.0350895822f, 0.0166638233f, -0.0229609609f,
     -0.0457035229f, -0.0650592223f, -0.0710682124f, -0.0657881573f, -0.046289444f,
     -0.0303610992f, -0.0136227822f, -0.00168934371f, 0.00677527953f, 0.0110472841f,
     0.0131929573f, 0.0126165785f, 0.0107237669f, 0.00830146577f, 0.00610007765f, 0.0042201085f,
     0.00276234979f, 0.00171799655f, 0.00101789064f, 0.000579157961f, 0.000315230631f,
     0.000164610392f, 8.25704119e-05f, 3.97895892e-05f, 1.8477207e-05f, 8.26256837e-06f},
};

constexpr float tanh_pieces[7][32] = {
    {0.0f, 0.281271696f, 0.521301329f, 0.69994235f, 0.819814026f, 0.894762099f, 0.939570844f,
     0.965646565f, 0.980583072f, 0.989061475f, 0.993849277f, 0.996545076f, 0.998060524f,
     0.99891156f, 0.999389291f, 0.999657393f, 0.999807775f, 0.999892175f, 0.999939501f,
     0.999966085f, 0.999980986f, 0.999989331f, 0.99999404f, 0.999996662f, 0.999998093f,
     0.999998927f, 0.999999404f, 0.999999642f, 0.999999821f, 0.999999881f, 0.99999994f,
     0.99999994f},
    {1.0f, 0.920886219f, 0.72824496f, 0.510080695f, 0.327904969f, 0.199400797f, 0.117206663f,
     0.0675266758f, 0.038456887f, 0.0217574462f, 0.0122636482f, 0.00689789793f, 0.00387524627f,
     0.00217566849f, 0.0012210228f, 0.000685115403f, 0.000384372717f, 0.00021563175f,
     0.000120964178f, 6.78565557e-05f, 3.80646452e-05f, 2.13525091e-05f, 1.19777278e-05f,
     6.71891439e-06f, 3.76897492e-06f, 2.11420502e-06f, 1.18596211e-06f, 6.65264622e-07f,
     3.73179688e-07f, 2.09334843e-07f, 1.17426211e-07f, 6.58701396e-08f},
    {-8.21851316e-08f, -0.259014308f, -0.379644126f, -0.357026786f, -0.268826574f, -0.178418368f,
     -0.110130966f, -0.0652003884f, -0.0377196185f, -0.0215286408f, -0.012194803f,
     -0.00687162438f, -0.00387860602f, -0.00216797972f, -0.00121593953f, -0.000688284752f,
     -0.000376582582f, -0.000214415806f, -0.000115289891f, -7.31431428e-05f, -4.5195502e-05f,
     -2.40637182e-05f, -2.28607423e-05f, -1.49920797e-05f, 4.98554846e-06f, 3.92929451e-06f,
     -1.20646648e-08f, 8.90730371e-06f, -3.351136e-06f, 5.35978415e-06f, 2.24007408e-07f,
     1.01478181e-05f},
    {-0.333325356f, -0.234104842f, -0.0448527858f, 0.0798702762f, 0.111084878f, 0.093174018f,
     0.064400889f, 0.040458519f, 0.0241591316f, 0.0140316021f, 0.00802528299f, 0.00455102138f,
     0.00256845844f, 0.00144568936f, 0.000812517072f, 0.000456269918f, 0.000256099942f,
     0.000143707541f, 8.06275057e-05f, 4.52327768e-05f, 2.53747694e-05f, 1.42344525e-05f,
     7.98501242e-06f, 4.47917728e-06f, 2.51260985e-06f, 1.40945895e-06f, 7.90632441e-07f,
     4.43504916e-07f, 2.48783522e-07f, 1.39556064e-07f, 7.82836764e-08f, 4.39126602e-08f},
    {-0.000253454433f, 0.151723564f, 0.150790885f, 0.0630801916f, -0.000934541808f,
     -0.0236958265f, -0.0231307019f, -0.0179566313f, -0.0102155767f, -0.00582521595f,
     -0.00328273908f, -0.00247774133f, -0.000232976192f, -0.00122910563f, -0.000820558926f,
     9.80930563e-05f, -0.00086672802f, -0.000186014586f, -0.000582875742f, 0.000483760057f,
     0.000670111622f, 0.000252483878f, 0.00103798555f, 0.000789859274f, -0.000839438871f,
     -0.00057932653f, -0.000112787566f, -0.000916726945f, 0.00028499373f, -0.000533273269f,
     -3.27289781e-05f, -0.000977909891f},
    {0.136866227f, 0.0554777198f, -0.0460068621f, -0.0591414981f, -0.0287332647f,
     -0.00537677249f, 0.00343439751f, 0.00471798051f, 0.00370006054f, 0.00243942789f,
     0.00149180996f, 0.000873966666f, 0.000503491727f, 0.000286746799f, 0.000161911114f,
     9.12265969e-05f, 5.12427505e-05f, 2.87841103e-05f, 1.617198e-05f, 9.07417871e-06f,
     5.09242773e-06f, 2.8562622e-06f, 1.60032459e-06f, 8.99654879e-07f, 5.04526611e-07f,
     2.82745731e-07f, 1.58739368e-07f, 8.90498839e-08f, 4.99644308e-08f, 2.79892536e-08f,
     1.57075721e-08f, 8.82826434e-09f},
    {-0.0224951524f, -0.0589999557f, -0.0576514378f, 0.0129739577f, 0.00349019701f,
     0.00325391535f, -0.0161014795f, 0.0168256499f, -0.0254962053f, -0.0247179866f,
     -0.0176921487f, 0.00612114463f, -0.0286462978f, 0.0138409818f, 0.0113069452f,
     -0.00894566718f, 0.0201922804f, 0.00311414967f, 0.0148367183f, -0.013854919f,
     -0.0186797101f, -0.00710236002f, -0.0285039525f, -0.0216682497f, 0.0229284074f,
     0.015828168f, 0.00307444925f, 0.0250710677f, -0.00779945403f, 0.0145858303f,
     0.000894228753f, 0.0267502274f},
};

constexpr float exp_pieces[32] = {
    1.0f, 1.0218972f, 1.04427373f, 1.06714046f, 1.09050775f, 1.1143868f, 1.13878858f,
     1.1637249f, 1.18920708f, 1.21524739f, 1.24185777f, 1.26905096f, 1.29683959f, 1.32523668f,
     1.35425556f, 1.38390994f, 1.41421354f, 1.44518077f, 1.47682619f, 1.50916445f, 1.54221082f,
     1.5759809f, 1.61049032f, 1.64575553f, 1.68179286f, 1.71861935f, 1.75625217f, 1.79470909f,
     1.8340081f, 1.87416768f, 1.91520655f, 1.95714414f};

INLINE Floats entries(const float (&table)[32], Register<int32_t> number) {
  Floats low, high;
  std::memcpy(&low, table, 64);
  std::memcpy(&high, table + 16, 64);
  return __builtin_shuffle(low, high, number);
}

// The polynomials of the pieces in which values lie, of the distances from the middles.
template <int Count>
INLINE Floats polynomials(const float (&tables)[Count][32], Register<int32_t> piece, Floats d) {
  Floats p = entries(tables[Count - 1], piece);
  for (int i = Count - 2; i > 0; i--) p = p * d + entries(tables[i], piece);
  return p;
}

INLINE Floats with_sign_of(Floats magnitude, Floats x) {
  using Words = Register<uint32_t>;
  return as<Floats>(as<Words>(magnitude) | (as<Words>(x) & 0x80000000u));
}

// Within 1.1 ulp, denormal results included. 2^(n/32) is looked up and shifted.
INLINE Floats exp(Floats x) {
  Floats t = larger(-104.5f - Floats{}, smaller(89.0f - Floats{}, x));
  Floats m = t * 46.1662413f + to_whole, n = m - to_whole;
  Floats d = t - n * 0.02166748046875f + n * 6.63107625e-06f;
  Floats power = entries(exp_pieces, as<Register<int32_t>>(m));
  Floats less_one = d + d * d * (0.5f + d * 0.16666667f);
  return __builtin_ia32_scalefps512_mask(power + power * less_one, n * 0.03125f, Floats{}, -1, 4);
}

// Within 1.1 ulp.
INLINE Floats tanh(Floats x) {
  Floats t = smaller(9.1f - Floats{}, magnitude_of(x));
  Floats m = t * 3.45945954f + to_whole, d = t - (m - to_whole) * 0.2890625f;
  Register<int32_t> piece = as<Register<int32_t>>(m);
  return with_sign_of(polynomials(tanh_pieces, piece, d) * d + entries(tanh_pieces[0], piece), x);
}

// Within 1.5 ulp. The slope at 0 is the only one that must be known to more than a float.
INLINE Floats erf(Floats x) {
  Floats t = smaller(3.93f - Floats{}, magnitude_of(x));
  Floats m = t * 8.0f + to_whole, d = t - (m - to_whole) * 0.125f;
  Register<int32_t> piece = as<Register<int32_t>>(m);
  Floats first = d * -5.86353834e-08f + entries(erf_pieces[0], piece);
  return with_sign_of(polynomials(erf_pieces, piece, d) * d + first, x);
}
#else
#define FUNCTION(NAME)                                                   \
  INLINE Floats NAME(Floats x) {                                         \
    __at_align__ float lanes[PASSNET_VECTOR_BYTES / sizeof(float)];      \
    std::memcpy(lanes, &x, sizeof(lanes));                               \
    for (float& lane : lanes) lane = inductor::NAME(lane);               \
    return as<Floats>(lanes);                                            \
  }
FUNCTION(exp)
FUNCTION(tanh)
FUNCTION(erf)
#undef FUNCTION
#endif

// Within 1.6 ulp. The nearest multiple of pi / 2 is taken off in four parts, of which the first two
// times it are exact; lanes beyond 8192 are computed one by one.
template <bool IsCosine>
INLINE Floats wave(Floats x) {
  using Ints = Register<int32_t>;
  if (!all_lanes(as<Floats>(as<Ints>(x) & 0x7FFFFFFF) < 8192.0f)) {
    for (size_t i = 0; i < PASSNET_VECTOR_BYTES / sizeof(float); i++)
      x[i] = IsCosine ? std::cos(x[i]) : std::sin(x[i]);
    return x;
  }
  Floats m = x * 0.636619772f + to_whole, n = m - to_whole;
  Floats r = x - n * 1.5703125f - n * 4.837512969970703e-4f;
  r = r - n * 7.54979013e-08f - n * -1.71512451e-15f;
  Floats s = r * r;
  Floats sine = r + r * s * ((-1.95161134e-4f * s + 8.33217986e-3f) * s - 0.166666552f);
  Floats cosine = ((2.44302846e-5f * s - 1.3887299e-3f) * s + 4.16666456e-2f) * s * s - 0.5f * s;
  Ints turns = as<Ints>(m) + IsCosine;
  Ints chosen = as<Ints>((turns & 1) != 0 ? cosine + 1.0f : sine);
  return as<Floats>(chosen ^ ((turns & 2) << 30));
}
INLINE Floats sin(Floats x) { return wave<false>(x); }
INLINE Floats cos(Floats x) { return wave<true>(x); }

// x^y of doubles that were floats, for finite x > 0 and finite y, within 2e-10: 2^(y * log2(x)). The
// logarithm of the mantissa, which lies around 1, is the series of 2 * atanh((m - 1) / (m + 1)).
INLINE Register<double> power(Register<double> x, Register<double> y) {
  using Longs = Register<int64_t>;
  using Doubles = Register<double>;
  Longs bits = as<Longs>(x), e = (bits - 0x3FE6A09E667F3BCD) >> 52;
  Doubles m = as<Doubles>(bits - (e << 52)), s = (m - 1.0) / (m + 1.0), z = s * s;
  Doubles p = z * 0.07692307692307693 + 0.09090909090909091;
  p = p * z + 0.1111111111111111;
  p = p * z + 0.14285714285714285;
  p = p * z + 0.2;
  p = p * z + 0.3333333333333333;
  Doubles exponent = __builtin_convertvector(e, Doubles);
  Doubles t = y * (exponent + (s + s * z * p) * 2.8853900817779268);
  t = t > 200.0 ? Doubles{} + 200.0 : t < -200.0 ? Doubles{} - 200.0 : t;
  Doubles n = t + 6755399441055744.0, f = (t - (n - 6755399441055744.0)) * 0.6931471805599453;
  Doubles q = f * 2.48015873015873e-05 + 1.984126984126984e-04;
  q = q * f + 1.388888888888889e-03;
  q = q * f + 8.333333333333333e-03;
  q = q * f + 4.1666666666666664e-02;
  q = q * f + 0.16666666666666666;
  q = q * f + 0.5;
  q = q * f + 1.0;
  return as<Doubles>(as<Longs>(q * f + 1.0) + (as<Longs>(n) << 52));
}

// Rounded from a double in all but a few of a million cases. Where a lane has no finite number, or
// none above 0, all lanes are computed one by one.
INLINE Floats pow(Floats x, Floats y) {
  constexpr float largest = 3.4028235e38f;
  if (!all_lanes((x > 0.0f) & (x <= largest) & (magnitude_of(y) <= largest))) {
    for (size_t i = 0; i < PASSNET_VECTOR_BYTES / sizeof(float); i++) x[i] = std::pow(x[i], y[i]);
    return x;
  }
  Register<double> bases[2], exponents[2];
  cast_all<double, 2, float, 1>(&x, bases);
  cast_all<double, 2, float, 1>(&y, exponents);
  for (int i = 0; i < 2; i++) bases[i] = power(bases[i], exponents[i]);
  cast_all<float, 1, double, 2>(bases, &x);
  return x;
}

}  // namespace at::vec::pieces
