#!/usr/bin/env python3
"""Small training runs in the form of the programs that people train with, and the results of `vit embed` for their files.

    python3 tests/weights/make_training_files.py VIT [--keep FOLDER] [FORM...]    all forms: about a minute

Each form trains a tiny model for two steps with its own library where that is installed, writes the checkpoint as that
library does, and runs `VIT embed` on it without any option that says what the model is. The result must be that of the
trained model's own forward pass. Forms whose library is missing are made by the wrappers of PyTorch that these
libraries put around a model, and the dictionary that they save; the line says which. Needs torch and timm; transformers
and accelerate for hf_trainer. It is not run by the tests of this project, which have no Python: CTest calls for
tests/weights and tests/apps cover the same forms from small files.
"""

import argparse
import copy
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import timm
import torch
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing

ARCH = "test_vit"  # the smallest that timm publishes: 64 wide, 6 blocks, images of 160 pixels
CLASSES = 7


def tiny(**options):
    torch.manual_seed(1)
    model = timm.create_model(ARCH, num_classes=CLASSES, **options)
    for p in model.parameters():  # layer scales of 1e-5 would hide the blocks
        if p.ndim == 1:
            nn.init.normal_(p, 0.5, 0.2)
    return model


def images(size=160, count=2):
    return torch.randn(count, 3, size, size, generator=torch.Generator().manual_seed(2))


def train(model, optimizer, after_step=lambda: None, loss=nn.functional.cross_entropy):
    """Two steps: weights, moments of the optimizer and averages differ from where they began."""
    model.train()
    for step in range(2):
        optimizer.zero_grad()
        loss(model(images()), torch.tensor([step, 3])).backward()
        optimizer.step()
        after_step()
    return model.eval()


@torch.no_grad()
def logits(model):
    return {"logits": model.eval()(images()).numpy()}


# ------------------------------------------------------------------------------------------------------------ forms
# Each returns (what is loaded, pixels, expected results by feature, who wrote it).


def timm_train(folder):
    """timm's train.py: CheckpointSaver, with the average of the weights, which are the ones to use."""
    from timm.utils import CheckpointSaver, ModelEmaV3

    model = tiny()
    average = ModelEmaV3(model, decay=0.5)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    train(model, optimizer, lambda: average.update(model))
    arguments = argparse.Namespace(model=ARCH, num_classes=CLASSES, gp=None, data_dir=Path("images"), lr=1e-2, model_ema=True)
    saver = CheckpointSaver(model, optimizer, arguments, average, checkpoint_dir=str(folder), recovery_dir=str(folder))
    saver.save_checkpoint(0, metric=np.float64(71.0))
    return folder / "model_best.pth.tar", images(), logits(average.module), "timm"


class Classifier(nn.Module):
    """A LightningModule's members, as users write them."""

    def __init__(self, name):
        super().__init__()
        setattr(self, name, tiny())
        self.criterion = nn.CrossEntropyLoss(weight=torch.rand(CLASSES))
        self.train_acc = nn.Module()
        self.train_acc.register_buffer("correct", torch.tensor(3))

    def forward(self, x):
        return next(self.children())(x)


def lightning(folder):
    """Lightning: the model in a member of the module, next to a loss with weights and metrics."""
    module = Classifier("net")
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
    train(module, optimizer)
    path = folder / "epoch=0-step=2.ckpt"
    torch.save(
        {
            "epoch": 0, "global_step": 2, "pytorch-lightning_version": "2.5.0", "state_dict": module.state_dict(),
            "loops": {"fit_loop": {"state_dict": {}, "epoch_progress": {"total": {"ready": 1}}}},
            "callbacks": {"ModelCheckpoint{'monitor': 'val_acc'}": {"best_model_score": torch.tensor(0.5)}},
            "optimizer_states": [optimizer.state_dict()], "lr_schedulers": [], "MixedPrecision": {"scale": 65536.0},
            "hparams_name": "kwargs", "hyper_parameters": {"model_name": ARCH, "lr": 1e-2},
        },
        path,
    )  # fmt: skip
    return path, images(), logits(module.net), "its dictionary"


def hf_trainer(folder):
    """transformers' Trainer: the output folder with a checkpoint for every step; the last one counts."""
    from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification

    torch.manual_seed(3)
    config = ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=32,
                       patch_size=8, num_labels=CLASSES)  # fmt: skip
    model = ViTForImageClassification(config)
    rows = [{"pixel_values": images(32)[i % 2], "labels": i % CLASSES} for i in range(4)]
    arguments = TrainingArguments(str(folder), max_steps=2, save_steps=1, per_device_train_batch_size=2, report_to=[],
                                  learning_rate=1e-2, use_cpu=True, disable_tqdm=True, logging_strategy="no")  # fmt: skip
    Trainer(model=model, args=arguments, train_dataset=rows).train()
    with torch.no_grad():
        expected = {"logits": model.eval().cpu()(images(32)).logits.numpy()}
    return folder, images(32), expected, "transformers"


class ClipTower(nn.Module):
    """The image tower of CLIP under the names of OpenAI's code, which OpenCLIP keeps. 12 heads, as ViT-B-32 has."""

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attn = nn.MultiheadAttention(width, 12, batch_first=True)
            self.mlp = nn.Sequential()
            self.mlp.add_module("c_fc", nn.Linear(width, 4 * width))
            self.mlp.add_module("gelu", nn.GELU())
            self.mlp.add_module("c_proj", nn.Linear(4 * width, width))

        def forward(self, x):
            y = self.ln_1(x)
            x = x + self.attn(y, y, y, need_weights=False)[0]
            return x + self.mlp(self.ln_2(x))

    def __init__(self, width=48, embedding=20):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 32, 32, bias=False)
        self.class_embedding = nn.Parameter(torch.randn(width))
        self.positional_embedding = nn.Parameter(torch.randn(5, width))
        self.ln_pre, self.ln_post = nn.LayerNorm(width), nn.LayerNorm(width)
        self.transformer = nn.Module()
        self.transformer.resblocks = nn.ModuleList([self.Block(width) for _ in range(2)])
        self.proj = nn.Parameter(torch.randn(width, embedding))

    def forward(self, x):
        x = self.conv1(x).flatten(2).mT
        x = torch.cat([self.class_embedding.expand(len(x), 1, -1), x], 1) + self.positional_embedding
        x = self.ln_pre(x)
        for block in self.transformer.resblocks:
            x = block(x)
        return self.ln_post(x[:, 0]) @ self.proj


class Clip(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.visual = ClipTower()
        self.token_embedding = nn.Embedding(9, 8)
        self.positional_embedding = nn.Parameter(torch.randn(4, 8))
        self.transformer = nn.Module()
        self.transformer.resblocks = nn.ModuleList()
        self.ln_final = nn.LayerNorm(8)
        self.text_projection = nn.Parameter(torch.randn(8, 20))
        self.logit_scale = nn.Parameter(torch.tensor(2.6))


def open_clip_train(folder):
    """OpenCLIP's training: DistributedDataParallel, and the model's name in that of the run."""
    model = Clip()
    optimizer = torch.optim.AdamW(model.visual.parameters(), lr=1e-2)
    for _ in range(2):
        model.visual(images(64)).square().mean().backward()
        optimizer.step()
    path = folder / "epoch_1.pt"
    torch.save({"epoch": 1, "name": "2026_01_02-03_04_05-model_ViT-B-32-lr_0.001-b_64-j_4-p_amp",
                "state_dict": {f"module.{k}": v for k, v in model.state_dict().items()},
                "optimizer": optimizer.state_dict(), "scaler": {"scale": 65536.0}}, path)  # fmt: skip
    with torch.no_grad():
        return path, images(64), {"projected": model.visual.eval()(images(64)).numpy()}, "its dictionary"


def dinov2(folder):
    """DINOv2's own training: student and teacher with heads and losses, blocks in chunks."""
    student, teacher = tiny(), tiny()
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-2)

    @torch.no_grad()
    def average():
        for slow, fast in zip(teacher.parameters(), student.parameters()):
            slow.lerp_(fast, 0.5)

    train(student, optimizer, average)

    def chunked(model):
        names = {}
        for name, value in model.state_dict().items():
            if name.startswith("blocks."):
                block = name.split(".")[1]
                name = f"blocks.{int(block) // 3}.{name.removeprefix('blocks.')}"
            if not name.startswith("head."):
                names[name] = value
        return names

    state = {"dino_loss.center": torch.zeros(1, 16), "ibot_patch_loss.center": torch.zeros(1, 1, 16)}
    for who, model in (("student", student), ("teacher", teacher)):
        state.update({f"{who}.backbone.{k}": v for k, v in chunked(model).items()})
        state[f"{who}.dino_head.mlp.0.weight"] = torch.randn(16, 64)
        state[f"{who}.dino_head.last_layer.weight_v"] = torch.randn(16, 16)
    path = folder / "model_final.rank_0.pth"
    torch.save({"model": state, "optimizer": optimizer.state_dict(), "iteration": 2, "args": {"arch": ARCH}}, path)
    with torch.no_grad():
        return path, images(), {"tokens": teacher.eval().forward_features(images()).numpy()}, "its dictionary"


def deepspeed(folder):
    """DeepSpeed: the folder of a run, whose file `latest` names the step; the state of the training script next to it."""
    model = tiny()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    train(model, optimizer)
    step = folder / "global_step2"
    step.mkdir()
    (folder / "latest").write_text("global_step2")
    shapes = {name: p.shape for name, p in model.named_parameters()}
    torch.save({"module": model.state_dict(), "buffer_names": [], "optimizer": None, "param_shapes": [shapes],
                "frozen_param_shapes": None, "shared_params": {}, "lr_scheduler": None, "sparse_tensor_module_names": set(),
                "skipped_steps": 0, "global_steps": 2, "dp_world_size": 1, "mp_world_size": 1, "ds_config": {"train_batch_size": 2},
                "ds_version": "0.17.0", "args": argparse.Namespace(arch=ARCH)},
               step / "mp_rank_00_model_states.pt")  # fmt: skip
    torch.save({"optimizer_state_dict": {"base_optimizer_state": optimizer.state_dict()}},
               step / "zero_pp_rank_0_mp_rank_00_optim_states.pt")  # fmt: skip
    return folder, images(), logits(model), "its dictionary"


def wrappers(folder):
    """torch.compile around DistributedDataParallel around blocks that are recomputed, as the names of each say."""
    model = tiny()
    expected_of = copy.deepcopy(model)
    apply_activation_checkpointing(model, check_fn=lambda m: type(m).__name__ == "Block")
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
    wrapped = torch.compile(nn.parallel.DistributedDataParallel(model), backend="eager")
    train(wrapped, torch.optim.SGD(model.parameters(), lr=1e-2))
    torch.distributed.destroy_process_group()
    state = {name: value for name, value in wrapped.named_parameters()}  # as scripts that gather them save
    names = [name for name in state if "_checkpoint_wrapped_module" in name and name.startswith("_orig_mod.module.")]
    assert names, list(state)[:3]
    expected_of.load_state_dict({k.replace("_orig_mod.", "").replace("module.", "", 1).replace("_checkpoint_wrapped_module.", ""): v
                                 for k, v in state.items()})  # fmt: skip
    path = folder / "checkpoint.pth"
    torch.save({"arch": ARCH, "model": state}, path)
    return path, images(), logits(expected_of), "torch"


def fsdp(folder):
    """FSDP: the names of parameters inside of wrapped blocks, which scripts that save the inner module get."""
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    model = tiny()
    blocks = {type(model.blocks[0])}
    expected_of = copy.deepcopy(model)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
    wrapped = FSDP(model, auto_wrap_policy=ModuleWrapPolicy(blocks), use_orig_params=True, device_id=torch.device("cpu"))
    train(wrapped, torch.optim.SGD(wrapped.parameters(), lr=1e-2))
    with FSDP.summon_full_params(wrapped):
        state = {name: value.detach().clone() for name, value in nn.Module.named_parameters(wrapped)}
    torch.distributed.destroy_process_group()
    assert any("_fsdp_wrapped_module" in name for name in state), list(state)[:3]
    expected_of.load_state_dict({k.replace("_fsdp_wrapped_module.", ""): v for k, v in state.items()})
    path = folder / "model.pt"
    torch.save({"arch": ARCH, "state_dict": state}, path)
    return path, images(), logits(expected_of), "torch"


def averaged(folder):
    """torch's AveragedModel, which is module.* and a counter."""
    model = tiny()
    average = torch.optim.swa_utils.AveragedModel(model)
    train(model, torch.optim.SGD(model.parameters(), lr=1e-2), lambda: average.update_parameters(model))
    path = folder / "swa.pth"
    torch.save({"arch": ARCH, "model": model.state_dict(), "swa_model": average.state_dict()}, path)
    return path, images(), logits(average.module), "torch"


FORMS = {f.__name__: f for f in (timm_train, lightning, hf_trainer, open_clip_train, dinov2, deepspeed, wrappers, fsdp, averaged)}


def check(vit, name, folder):
    path, pixels, expected, writer = FORMS[name](folder)
    pixels_file, out = folder / "pixels.npy", folder / "out.npz"
    np.save(pixels_file, pixels.numpy())
    command = [vit, "embed", str(pixels_file), "--model", str(path), "--features", ",".join(expected), "--output", str(out)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        return f"{name}: FAILED: {run.stderr.strip()}"
    found = np.load(out)
    worst = 0.0
    for feature, values in expected.items():
        if found[feature].shape != values.shape:
            return f"{name}: FAILED: {feature} has shape {found[feature].shape}, expected {values.shape}"
        worst = max(worst, float(np.abs(found[feature] - values).max() / max(1.0, np.abs(values).max())))
    verdict = "" if worst < 1e-5 else "FAILED: "
    return f"{name}: {verdict}{', '.join(expected)} within {worst:.1e} of the trained model ({writer})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vit", help="the program")
    parser.add_argument("forms", nargs="*", choices=[*FORMS, []], help="default: all")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write the runs here and keep them")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        for name in arguments.forms or FORMS:
            folder = (arguments.keep or Path(scratch)) / name
            folder.mkdir(parents=True)
            line = check(arguments.vit, name, folder)
            failed = failed or "FAILED" in line
            print(line, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
