import pytest

from gnnperf import zoo
from gnnperf.errors import ModelFileError


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("resnet50", "resnet"),
        ("gluon_seresnext50_32x4d", "resnet"),
        ("res2next50", "resnet"),
        ("halonet50ts", "resnet"),
        ("legacy_senet154", "resnet"),
        ("repvgg_b1g4", "vgg"),
        ("vgg19_bn", "vgg"),
        ("tf_inception_v3", "inception"),
        ("ens_adv_inception_resnet_v2", "inception"),
        ("inception_next_tiny", "convnext"),
        ("tv_densenet121", "densenet"),
        ("tf_efficientnet_b0_ns", "efficientnet"),
        ("semnasnet_100", "mnasnet"),
        ("pnasnet5large", "nasnet"),
        ("fbnetc_100", "mobilenet"),
        ("regnetz_d8", "regnet"),
        ("vit_base_resnet50_384", "transformer"),
        ("swinv2_cr_tiny_224", "transformer"),
        ("test_vit", "transformer"),
        ("repvit_m1", "repvit"),
        ("convformer_s18", "metaformer"),
        ("starnet_s3", "starnet"),
    ],
)
def test_a_name_is_held_out_with_its_kin(name, family):
    assert zoo.family(f"timm/{name}@224") == family


def test_families_of_kin_are_families_of_the_zoo():
    ours = {zoo.family(name) for name in zoo.names()}
    for name in ("resnet18", "vgg11", "densenet121", "inception_v3", "mobilenetv2_100", "mnasnet_100", "vit_tiny"):
        assert zoo.family(f"timm/{name}") in ours


@pytest.mark.parametrize("spec", ["timm/", "timm/no such", "timm/../resnet50", "timm/resnet50@big"])
def test_what_no_model_can_be_called_is_refused(spec):
    with pytest.raises(ModelFileError):
        zoo.family(spec)


def test_timm_networks_are_not_written():
    assert zoo.default_image("timm/resnet50@160") == 160
    with pytest.raises(ModelFileError, match=r"export them with torch\.onnx\.export"):
        zoo.build("timm/resnet50@224")
