"""Users' files among the zoo's networks: known by name, a family each."""

import pytest

from gnnperf import zoo
from gnnperf.errors import ModelFileError
from gnnperf.zoo.user_file import is_file, spec_of_file

KEY = "0123456789abcdef"


@pytest.mark.parametrize(("name", "family"), [("My Net (v2)", "my_net_v2_"), ("a.b-c", "a.b_c"), ("日本", "_")])
def test_every_name_gives_a_specification_that_is_a_family(name, family):
    spec = spec_of_file(name, KEY)
    assert is_file(spec) and spec.endswith(KEY)
    assert zoo.family(spec) == family


def test_it_cannot_be_built():
    with pytest.raises(ModelFileError, match="give the ONNX file itself"):
        zoo.build(spec_of_file("net", KEY), image=None)


@pytest.mark.parametrize("spec", ["file/net", f"file/-{KEY}", f"file/Net-{KEY}", f"file/net-{KEY}0"])
def test_other_forms_are_refused(spec):
    with pytest.raises(ModelFileError, match="16 digits"):
        zoo.family(spec)
