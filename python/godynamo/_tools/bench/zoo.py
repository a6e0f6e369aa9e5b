"""The models of `make models`: tiny configurations with random weights, under names `library.model`.

A maker returns a module, positional arguments and keyword arguments for it. The process that runs the model calls the
maker, with a fixed seed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Made = tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]
Maker = Callable[[], Made]

VOCABULARY, TOKENS = 100, 8


def _torchvision(name: str, size: int = 64) -> Maker:
    def make() -> Made:
        import torchvision.models

        return getattr(torchvision.models, name)(weights=None), (torch.randn(2, 3, size, size),), {}

    return make


def _timm(name: str, size: int = 224) -> Maker:
    def make() -> Made:
        import timm

        return timm.create_model(name, pretrained=False), (torch.randn(2, 3, size, size),), {}

    return make


_SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}


def _transformers(
    model: str, config: str, takes: str = "ids", without: str = "num_key_value_heads", **changes: Any
) -> Maker:
    """Return a maker of a model. ``without``: names of _SMALL that its config lacks; ``takes``: the kind of inputs."""

    def make() -> Made:
        import transformers

        values = {k: v for k, v in _SMALL.items() if k not in without.split()} | changes
        module = getattr(transformers, model)(getattr(transformers, config)(**values))
        ids = torch.randint(3, VOCABULARY, (1, TOKENS))
        inputs = {
            "ids": {"input_ids": ids},
            "mask": {"input_ids": ids, "attention_mask": torch.ones_like(ids)},
            "pair": {"input_ids": ids, "decoder_input_ids": ids},
            "pixels": {"pixel_values": torch.randn(1, 3, 32, 32)},
        }
        return module, (), inputs[takes]

    return make


def _decoder(name: str, **changes: Any) -> Maker:
    """Return a maker of a causal language model with grouped-query attention."""
    return _transformers(f"{name}ForCausalLM", f"{name}Config", without="", **changes)


_TEXT = "num_key_value_heads vocab_size max_position_embeddings"
_VISION: dict[str, Any] = {"image_size": 32, "patch_size": 8, "without": _TEXT, "takes": "pixels"}
_ENCODER_DECODER: dict[str, Any] = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "takes": "pair",
}

MODELS: dict[str, Maker] = {
    "torchvision.alexnet": _torchvision("alexnet"),
    "torchvision.convnext_tiny": _torchvision("convnext_tiny"),
    "torchvision.densenet121": _torchvision("densenet121"),
    "torchvision.efficientnet_b0": _torchvision("efficientnet_b0"),
    "torchvision.mnasnet0_5": _torchvision("mnasnet0_5"),
    "torchvision.mobilenet_v3_small": _torchvision("mobilenet_v3_small"),
    "torchvision.regnet_y_400mf": _torchvision("regnet_y_400mf"),
    "torchvision.resnet18": _torchvision("resnet18"),
    "torchvision.shufflenet_v2_x0_5": _torchvision("shufflenet_v2_x0_5"),
    "torchvision.squeezenet1_0": _torchvision("squeezenet1_0"),
    "torchvision.swin_t": _torchvision("swin_t"),
    "torchvision.vgg11": _torchvision("vgg11"),
    "torchvision.vit_b_16": _torchvision("vit_b_16", 224),
    "timm.beit_base": _timm("beit_base_patch16_224"),
    "timm.cait_xxs24": _timm("cait_xxs24_224"),
    "timm.convnext_atto": _timm("convnext_atto", 64),
    "timm.deit_tiny": _timm("deit_tiny_patch16_224"),
    "timm.edgenext_xx_small": _timm("edgenext_xx_small", 64),
    "timm.efficientnet_lite0": _timm("efficientnet_lite0", 64),
    "timm.eva02_tiny": _timm("eva02_tiny_patch14_224"),
    "timm.ghostnet_050": _timm("ghostnet_050", 64),
    "timm.hrnet_w18_small": _timm("hrnet_w18_small", 64),
    "timm.levit_128s": _timm("levit_128s"),
    "timm.mixer_s32": _timm("mixer_s32_224"),
    "timm.mobilevit_xxs": _timm("mobilevit_xxs", 64),
    "timm.nfnet_l0": _timm("nfnet_l0", 64),
    "timm.pit_ti": _timm("pit_ti_224"),
    "timm.poolformer_s12": _timm("poolformer_s12", 64),
    "timm.regnetx_002": _timm("regnetx_002", 64),
    "timm.resmlp_12": _timm("resmlp_12_224"),
    "timm.resnet10t": _timm("resnet10t", 64),
    "timm.swin_tiny": _timm("swin_tiny_patch4_window7_224"),
    "timm.tnt_s": _timm("tnt_s_legacy_patch16_224"),
    "timm.vit_tiny": _timm("vit_tiny_patch16_224"),
    "transformers.albert": _transformers("AlbertModel", "AlbertConfig", embedding_size=16),
    "transformers.bart": _transformers("BartForConditionalGeneration", "BartConfig", **_ENCODER_DECODER),
    "transformers.bert": _transformers("BertModel", "BertConfig", "mask"),
    "transformers.bert_mlm": _transformers("BertForMaskedLM", "BertConfig"),
    "transformers.bloom": _transformers("BloomForCausalLM", "BloomConfig", n_layer=2, n_head=4),
    "transformers.clip_text": _transformers("CLIPTextModel", "CLIPTextConfig"),
    "transformers.convbert": _transformers("ConvBertModel", "ConvBertConfig", embedding_size=32),
    "transformers.deberta_v2": _transformers("DebertaV2Model", "DebertaV2Config"),
    "transformers.deit": _transformers("DeiTModel", "DeiTConfig", **_VISION),
    "transformers.distilbert": _transformers(
        "DistilBertModel", "DistilBertConfig", dim=32, n_layers=2, n_heads=4, hidden_dim=64
    ),
    "transformers.electra": _transformers("ElectraModel", "ElectraConfig", embedding_size=16),
    "transformers.falcon": _transformers("FalconForCausalLM", "FalconConfig"),
    "transformers.gemma": _decoder("Gemma", head_dim=8),
    "transformers.gemma2": _decoder("Gemma2", head_dim=8),
    "transformers.gpt2": _transformers("GPT2LMHeadModel", "GPT2Config"),
    "transformers.gpt_neox": _transformers("GPTNeoXForCausalLM", "GPTNeoXConfig"),
    "transformers.gptj": _transformers("GPTJForCausalLM", "GPTJConfig", n_embd=32, n_layer=2, n_head=4, rotary_dim=4),
    "transformers.llama": _decoder("Llama"),
    "transformers.longformer": _transformers("LongformerModel", "LongformerConfig", attention_window=4),
    "transformers.mamba": _transformers("MambaForCausalLM", "MambaConfig", state_size=4),
    "transformers.mistral": _decoder("Mistral"),
    "transformers.mixtral": _decoder("Mixtral", num_local_experts=2),
    "transformers.mpnet": _transformers("MPNetModel", "MPNetConfig"),
    "transformers.opt": _transformers("OPTForCausalLM", "OPTConfig", ffn_dim=64, word_embed_proj_dim=32),
    "transformers.phi": _transformers("PhiForCausalLM", "PhiConfig"),
    "transformers.phi3": _decoder("Phi3"),
    "transformers.qwen2": _decoder("Qwen2"),
    "transformers.qwen3": _decoder("Qwen3", head_dim=8),
    "transformers.roberta": _transformers("RobertaModel", "RobertaConfig"),
    "transformers.rwkv": _transformers("RwkvModel", "RwkvConfig", attention_hidden_size=32),
    "transformers.squeezebert": _transformers("SqueezeBertModel", "SqueezeBertConfig", embedding_size=32),
    "transformers.t5": _transformers(
        "T5ForConditionalGeneration", "T5Config", "pair", d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4
    ),
    "transformers.vit": _transformers("ViTModel", "ViTConfig", **_VISION),
}

#: models with more layers than those of MODELS
DEEP: dict[str, Maker] = {"transformers.llama_of_24_layers": _decoder("Llama", num_hidden_layers=24)}
