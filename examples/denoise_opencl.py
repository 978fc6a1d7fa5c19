"""The functions of denoise.yaml as OpenCL kernels: a stand-in for the network, and the scheduler's step.

    dagsched run examples/denoise.yaml --backend opencl --functions examples/denoise_opencl.py --count steps=20

The latent goes from iteration to iteration on the device. A function gets arrays by the names that `args:` in the plan
gives them: `latent@i-1` and `latent@i` are two slots of one ring, here `old` and `new`. `float16` is loaded and stored
as such and computed with in `float`, which every OpenCL device can do.
"""

import functools

import numpy as np
import pyopencl as cl

SOURCE = """
#pragma OPENCL FP_CONTRACT OFF

kernel void unet(global const half *x, global const half *text, global half *y) {
  int k = get_global_id(0);
  float guide = vload_half(k % (77 * 768), text);
  vstore_half(0.25f * vload_half(k, x) + 0.125f * guide, k, y);
}

kernel void scheduler_step(global const half *old, global const half *predicted, global half *new) {
  int k = get_global_id(0);
  vstore_half(vload_half(k, old) - 0.5f * vload_half(k, predicted), k, new);
}
"""


@functools.cache
def build(context):
    """The kernels, compiled once for each context."""
    return cl.Program(context, SOURCE).build()


def unet(x, text, y, queue):
    """A stand-in for the network: noise as the latent and the text suggest it."""
    cl.Kernel(build(queue.context), "unet")(queue, (y.size,), None, x.data, text.data, y.data)


def scheduler_step(old, predicted, new, queue):
    """Take half of the predicted noise away."""
    kernel = cl.Kernel(build(queue.context), "scheduler_step")
    kernel(queue, (new.size,), None, old.data, predicted.data, new.data)


def inputs():
    """The buffers with `input: true`."""
    random = np.random.default_rng(1)
    noise = random.normal(size=(1, 4, 64, 64)).astype(np.float16)
    return {"noise": noise, "prompt": random.normal(size=(1, 77, 768)).astype(np.float16)}


def plain(steps):
    """What the plan means, in NumPy: the buffers with `output: true`."""
    given = inputs()
    latent = given["noise"].astype(np.float32)
    guide = given["prompt"].reshape(-1)[: latent.size].reshape(latent.shape).astype(np.float32)
    for _ in range(steps):
        predicted = (np.float32(0.25) * latent + np.float32(0.125) * guide).astype(np.float16)
        latent = (latent - np.float32(0.5) * predicted.astype(np.float32)).astype(np.float16).astype(np.float32)
    image = latent.astype(np.float16)
    return {"preview": image, "image": image}
