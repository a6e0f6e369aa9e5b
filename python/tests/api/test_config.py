"""godynamo.config: names and values are checked, patches are undone, the core receives its settings."""

import pytest
import torch

import godynamo
from godynamo import _C, config


@pytest.fixture(autouse=True)
def _defaults():
    yield
    config.reset_config()


def test_an_unknown_name_is_refused_with_the_nearest_ones():
    with pytest.raises(AttributeError, match="cache_size_limit"):
        config.cache_size_limitt = 3
    with pytest.raises(AttributeError, match="cache_size_limit"):
        _ = config.cache_size_limitt
    with pytest.raises(AttributeError), config.patch(nonsense=1):
        pass


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("cache_size_limit", "8", TypeError),
        ("cache_size_limit", True, TypeError),
        ("cache_size_limit", -1, ValueError),
        ("cache_evict", 1, TypeError),
        ("tensor_guards", "some", ValueError),
        ("max_translated_instructions", 0, ValueError),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(name, value, error):
    before = getattr(config, name)
    with pytest.raises(error, match=name):
        setattr(config, name, value)
    assert getattr(config, name) == before


def test_a_setting_cannot_be_deleted():
    with pytest.raises(AttributeError):
        del config.cache_size_limit


def test_the_core_hears_of_its_settings():
    config.cache_size_limit = 3
    config.cache_evict = True
    config.disable = True
    assert _C.get_config()["cache_size_limit"] == 3
    assert _C.get_config()["cache_evict"] == 1
    assert _C.get_config()["enabled"] == 0
    config.reset_config()
    assert _C.get_config()["cache_size_limit"] == 8
    assert _C.get_config()["enabled"] == 1


def test_patch_in_its_three_spellings_and_nested():
    with config.patch(cache_size_limit=2, cache_evict=True):
        assert (config.cache_size_limit, config.cache_evict) == (2, True)
        with config.patch("cache_size_limit", 5):
            assert config.cache_size_limit == 5
        with config.patch({"cache_size_limit": 6}):
            assert config.cache_size_limit == 6
        assert config.cache_size_limit == 2
    assert (config.cache_size_limit, config.cache_evict) == (8, False)


def test_patch_as_decorator_holds_during_each_call_recursive_ones_too():
    @config.patch(cache_size_limit=2)
    def f(n):
        return [config.cache_size_limit] + (f(n - 1) if n else [])

    assert f(2) == [2, 2, 2]
    assert config.cache_size_limit == 8


def test_patch_changes_nothing_when_one_value_is_refused():
    with pytest.raises(TypeError), config.patch(cache_evict=True, cache_size_limit="x"):
        pass
    assert (config.cache_size_limit, config.cache_evict) == (8, False)


def test_patch_restores_after_an_exception():
    with pytest.raises(KeyError), config.patch(cache_size_limit=2):
        raise KeyError
    assert config.cache_size_limit == 8


def scaled(x, n):
    return x.reshape(x.numel()) * n, x.sum().item()


@pytest.mark.parametrize(
    ("setting", "value", "translations", "breaks"),
    [
        ("dynamic_shapes", False, 4, True),
        ("specialize_int", True, 3, False),
        ("capture_scalar_outputs", False, 3, True),
    ],
)
def test_settings_that_make_sizes_constants(setting, value, translations, breaks):
    calls = [(torch.ones(2, 3), 1), (torch.ones(3, 3), 2), (torch.ones(4, 3), 3)]
    godynamo.reset()
    usual = godynamo.optimize(scaled)
    for args in calls:
        usual(*args)
    assert godynamo.cache_stats(usual)["translations"] == 2
    with config.patch({setting: value}):
        godynamo.reset()
        special = godynamo.optimize(scaled)
        for args in calls:
            assert torch.equal(special(*args)[0], scaled(*args)[0])
        assert godynamo.cache_stats(special)["translations"] == translations
        assert bool(godynamo.explain(scaled)(*calls[0]).break_reasons) == breaks


def test_get_config_lists_all():
    assert config.get_config()["cache_size_limit"] == godynamo.config.cache_size_limit
    assert set(config.get_config()) >= {"queue_effects", "tensor_guards", "suppress_errors", "verify_correctness"}
