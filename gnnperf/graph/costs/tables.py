"""Operator type -> class and work per element, for every operator whose cost follows from sizes alone."""

from __future__ import annotations

from gnnperf.graph.opgraph import OpClass

_MS = "com.microsoft."
_ML = "ai.onnx.ml."

ACTIVATION_FLOPS = {
    **dict.fromkeys(
        "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Cos Cosh Erf Exp Floor IsInf IsNaN Log Neg Not "
        "Reciprocal Relu Round Sign Sin Sinh Sqrt Tan Tanh ThresholdedRelu".split(),
        1,
    ),
    **dict.fromkeys(["Clip", "LeakyRelu", "PRelu", "Shrink", "Softsign", _MS + "QLinearLeakyRelu"], 2),
    **dict.fromkeys(["Celu", "Elu", "HardSigmoid", "Selu", "Softplus", "ParametricSoftplus", "ScaledTanh"], 3),
    **dict.fromkeys(["HardSwish", "Sigmoid", _MS + "QLinearSigmoid"], 4),
    **dict.fromkeys(["Mish", "Swish", "SwiGLU", _MS + "QuickGelu", "QuickGelu", _MS + "ScaledSiLU"], 5),
    **dict.fromkeys(["Gelu", _MS + "Gelu", _MS + "BiasGelu", _MS + "QOrderedGelu"], 6),
    _MS + "BiasSplitGelu": 8,
    _MS + "FastGelu": 9,
}
"""Operations per output element; a transcendental function counts as one."""

ELEMENTWISE_FLOPS = {
    **dict.fromkeys(
        "Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean "
        "Min Mod Mul Or Pow Sub Sum Where Xor".split(),
        1,
    ),
    **dict.fromkeys([_MS + "QLinearAdd", _MS + "QLinearMul", _MS + "BiasAdd", _MS + "BiasDropout", "Dropout"], 1),
    **dict.fromkeys([_MS + "BitmaskDropout", _MS + "BitmaskBiasDropout", _MS + "QLinearWhere", _MS + "MulInteger"], 1),
    **dict.fromkeys(["Affine", "ImageScaler", "Scale", _MS + "GatedAdd"], 2),
    **dict.fromkeys(["RotaryEmbedding", _MS + "RotaryEmbedding", _MS + "MRotaryEmbedding"], 3),
    **dict.fromkeys([_MS + "GemmaRotaryEmbedding", _MS + "ComplexMul", _MS + "ComplexMulConj"], 3),
    _MS + "SwiGLU": 6,
    "ai.onnx.preview.training.Momentum": 3,
    "ai.onnx.preview.training.Adagrad": 5,
    "ai.onnx.preview.training.Adam": 10,
}
"""Operations per output element and per input beyond the first."""

REDUCTION_FLOPS = {
    **dict.fromkeys(
        "ArgMax ArgMin CumProd CumSum ReduceL1 ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum".split(), 1
    ),
    **dict.fromkeys([_MS + "ReduceSumInteger", _MS + "IsAllFinite"], 1),
    **dict.fromkeys(["ReduceL2", "ReduceLogSum", "ReduceSumSquare", _MS + "QLinearReduceMean"], 2),
    **dict.fromkeys(["ReduceLogSumExp", "TopK", "NonMaxSuppression", "Unique", "Det", _MS + "Unique"], 4),
    **dict.fromkeys(["NegativeLogLikelihoodLoss"], 2),
    # 5 log2(n) of a fast transform of about a thousand points
    **dict.fromkeys(["DFT", "STFT", _MS + "Rfft", _MS + "Irfft"], 50),
    _MS + "Inverse": 64,  # 2/3 n^3 of a matrix of about a hundred rows
}
"""Operations per input element."""

SOFTMAX_FLOPS = dict.fromkeys(
    ["Softmax", "LogSoftmax", "Hardmax", "SoftmaxCrossEntropyLoss", _MS + "BiasSoftmax", _MS + "QLinearSoftmax"], 5
)

NORM_FLOPS = {
    **dict.fromkeys(["LayerNormalization", "InstanceNormalization", "GroupNormalization"], 8),
    **dict.fromkeys(["MeanVarianceNormalization", _MS + "LayerNormalization", _MS + "GroupNorm"], 8),
    **dict.fromkeys([_MS + "SkipLayerNormalization", "SkipLayerNormalization", _MS + "SkipGroupNorm"], 9),
    **dict.fromkeys(["RMSNormalization", "SimplifiedLayerNormalization", _MS + "SimplifiedLayerNormalization"], 4),
    **dict.fromkeys(["SkipSimplifiedLayerNormalization", _MS + "SkipSimplifiedLayerNormalization"], 5),
    **dict.fromkeys(["LpNormalization"], 3),
    **dict.fromkeys([_MS + "QOrderedLayerNormalization"], 8),
    **dict.fromkeys([_MS + "BranchwiseRMSNorm"], 4),
    **dict.fromkeys([_MS + "GatedRMSNorm", _MS + "RMSNormRotary"], 8),
}
"""Operations per output element of layer, instance, group and RMS normalisation."""

QUANTIZE_FLOPS = {
    **dict.fromkeys(["BitCast"], 0),
    **dict.fromkeys(["Cast", "CastLike"], 1),
    **dict.fromkeys(["DequantizeLinear", "QuantizeLinear"], 2),
    **dict.fromkeys([_MS + "DequantizeLinear", _MS + "QuantizeLinear"], 2),
    **dict.fromkeys([_MS + "QuantizeWithOrder", _MS + "DequantizeWithOrder"], 2),
    **dict.fromkeys([_MS + "QuantizeBFP", _MS + "DequantizeBFP"], 2),
    "DynamicQuantizeLinear": 5,
}

CLASSICAL_ML_FLOPS = {
    **dict.fromkeys(
        "ArrayFeatureExtractor Binarizer CastMap CategoryMapper DictVectorizer FeatureVectorizer Imputer "
        "LabelEncoder LinearClassifier LinearRegressor OneHotEncoder SVMClassifier SVMRegressor TreeEnsemble "
        "TreeEnsembleClassifier TreeEnsembleRegressor ZipMap".split(),
        1,
    ),
    **dict.fromkeys(["Normalizer", "Scaler"], 2),
}
CLASSICAL_ML_FLOPS = {_ML + name: flops for name, flops in CLASSICAL_ML_FLOPS.items()} | dict.fromkeys(
    ["TfIdfVectorizer", "StringNormalizer", "StringConcat", "StringSplit", "RegexFullMatch", _MS + "Tokenizer"], 1
)

DATA_MOVEMENT = frozenset(
    "AffineGrid BlackmanWindow CenterCropPad Col2Im Compress Concat ConcatFromSequence ConstantOfShape DepthToSpace "
    "Expand EyeLike Gather GatherElements GatherND HammingWindow HannWindow ImageDecoder MelWeightMatrix NonZero "
    "OneHot Pad RandomNormal RandomNormalLike RandomUniform RandomUniformLike Bernoulli Multinomial Range "
    "ReverseSequence Scatter ScatterElements ScatterND SequenceAt SequenceErase SequenceInsert Slice SpaceToDepth "
    "Split SplitToSequence TensorScatter Tile Transpose Trilu "
    "Crop com.microsoft.nchwc.ReorderInput com.microsoft.nchwc.ReorderOutput".split()
) | frozenset(
    _MS + name
    for name in "ExpandDims GatherBlockQuantized GatherND GatedRelativePositionBias NGramRepeatBlock Pad QLinearConcat "
    "Range RelativePositionBias RemovePadding RestorePadding TorchEmbedding Trilu UnfoldTensor".split()
)
VIEW = frozenset(
    "Constant Flatten Identity Optional OptionalGetElement OptionalHasElement Reshape SequenceConstruct SequenceEmpty "
    "SequenceLength Shape Size Squeeze Unsqueeze".split()
)
READS_A_PART = frozenset("Gather GatherElements GatherND Slice SequenceAt".split()) | frozenset(
    _MS + name for name in ("GatherBlockQuantized", "GatherND", "TorchEmbedding", "RelativePositionBias")
)
"""Operators that read of their first input only what they write."""

CLASS_BY_TYPE: dict[str, OpClass] = {
    **dict.fromkeys(ACTIVATION_FLOPS, OpClass.ACTIVATION),
    **dict.fromkeys(ELEMENTWISE_FLOPS, OpClass.ELEMENTWISE),
    **dict.fromkeys(REDUCTION_FLOPS, OpClass.REDUCTION),
    **dict.fromkeys(SOFTMAX_FLOPS, OpClass.SOFTMAX),
    **dict.fromkeys(NORM_FLOPS, OpClass.LAYER_NORM),
    **dict.fromkeys(QUANTIZE_FLOPS, OpClass.QUANTIZE),
    **dict.fromkeys(CLASSICAL_ML_FLOPS, OpClass.CLASSICAL_ML),
    **dict.fromkeys(DATA_MOVEMENT, OpClass.DATA_MOVEMENT),
    **dict.fromkeys(VIEW, OpClass.VIEW),
    **dict.fromkeys(["If", "Loop", "Scan", "SequenceMap"], OpClass.CONTROL_FLOW),
    **dict.fromkeys(["Resize", "Upsample", "GridSample", _MS + "GridSample", _MS + "CropAndResize"], OpClass.RESIZE),
    _MS + "nchwc.Upsample": OpClass.RESIZE,
    "BatchNormalization": OpClass.BATCH_NORM,
    "LRN": OpClass.LRN,
}

NOT_WEIGHTS: dict[str, frozenset[int]] = {
    **dict.fromkeys(["Reshape", "Expand", "Tile", "Squeeze", "Unsqueeze", "Split", "TopK", "Upsample"], frozenset({1})),
    **dict.fromkeys(["Clip", "Pad", "Resize", "Slice", _MS + "Pad"], frozenset({1, 2, 3, 4})),
    **dict.fromkeys(["OneHot", "Dropout", "CumSum", "Trilu", "DFT", "CenterCropPad"], frozenset({1, 2})),
    **dict.fromkeys((name for name in REDUCTION_FLOPS if name.startswith("Reduce")), frozenset({1})),
    "STFT": frozenset({1, 3}),
    "Range": frozenset({0, 1, 2}),
    "ConstantOfShape": frozenset({0}),
    "NonMaxSuppression": frozenset({2, 3, 4}),
    "ReverseSequence": frozenset({1}),
}
"""Input positions that hold settings such as axes and sizes, whatever they are made of."""

NOT_TRAINED: dict[str, frozenset[int]] = {
    "BatchNormalization": frozenset({3, 4}),
    "QLinearConv": frozenset({1, 2, 4, 5, 6, 7}),
    "QLinearMatMul": frozenset({1, 2, 4, 5, 6, 7}),
    "ConvInteger": frozenset({2, 3}),
    "MatMulInteger": frozenset({2, 3}),
    "LSTM": frozenset({4, 5, 6}),
    "GRU": frozenset({4, 5}),
    "RNN": frozenset({4, 5}),
    _MS + "DynamicQuantizeLSTM": frozenset({4, 5, 6, 8, 9, 10, 11}),
    _MS + "DynamicQuantizeMatMul": frozenset({2, 3}),
    _MS + "MatMulIntegerToFloat": frozenset({2, 3, 4, 5}),
    _MS + "QGemm": frozenset({1, 2, 4, 5, 7, 8}),
    _MS + "MatMulNBits": frozenset({2, 3, 4}),
    _MS + "MatMulBnb4": frozenset({2}),
    _MS + "MatMulNBitsQkv": frozenset({4, 7, 10}),
    _MS + "MatMulNBitsMlp": frozenset({4, 7}),
    _MS + "MatMulBlockQuantizedFp4Weight": frozenset({2, 3, 4}),
    _MS + "MatMulBlockQuantizedFp8Weight": frozenset({2, 3}),
    _MS + "QLinearConv": frozenset({1, 2, 4, 5, 6, 7}),
    _MS + "QMoE": frozenset({3, 6, 9, 11, 12, 13, 15, 16, 17, 18, 19}),
    _MS + "QOrderedMatMul": frozenset({1, 3, 4, 7}),
    _MS + "QAttention": frozenset({3, 4, 5, 6, 7}),
    **dict.fromkeys(["QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"], frozenset({1, 2})),
}
"""Positions of constants that training does not touch: running statistics, scales and zero points, first states."""
