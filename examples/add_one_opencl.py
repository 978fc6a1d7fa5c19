"""The function of add_one.yaml as an OpenCL kernel, and an array to add one to.

    dagsched run examples/add_one.yaml --backend opencl --functions examples/add_one_opencl.py

A compute function gets the device arrays that its operation touches, by name (`pyopencl.array.Array`), and `queue`, on
which it enqueues. It does not wait: what comes later in the plan is kept behind it by events.
"""

import functools

import numpy as np
import pyopencl as cl

SOURCE = """
kernel void add_one(global float *d) { d[get_global_id(0)] += 1.0f; }
"""


@functools.cache
def build(context):
    """The kernels, compiled once for each context."""
    return cl.Program(context, SOURCE).build()


def add_one(d, queue):
    """One more everywhere."""
    cl.Kernel(build(queue.context), "add_one")(queue, (d.size,), None, d.data)


def inputs():
    """The buffers with `input: true`."""
    return {"x": np.arange(1048576, dtype=np.float32)}


def plain():
    """What the plan means, in NumPy: the buffers with `output: true`."""
    return {"y": inputs()["x"] + 1}
