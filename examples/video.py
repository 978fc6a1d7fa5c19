"""The functions of video.yaml in NumPy, and the same as a plain loop.

    dagsched run examples/video.yaml --functions examples/video.py --count frames=30

Each function is called with the buffers that its operation touches, by name, as arrays of bytes (video.yaml gives sizes
and no shapes); what an operation only reads is read-only. `i` is the iteration.
"""

import numpy as np

HEIGHT, WIDTH = 1080, 1920
SMALL = (HEIGHT // 8, WIDTH // 8, 3)
SMALL_BYTES = SMALL[0] * SMALL[1] * SMALL[2]
MOST_BOXES = 8

_random = np.random.default_rng(1)
_FILTERS_1 = _random.normal(size=(3, 3, 3, 4)).astype(np.float32)
_FILTERS_2 = _random.normal(size=(3, 3, 4, 1)).astype(np.float32)


def receive_packet(packet, i):
    """A made-up camera: a gradient, noise, and a bright square that wanders."""
    small = np.random.default_rng(i).integers(0, 40, SMALL, np.uint8)
    small += np.linspace(0, 60, SMALL[1]).astype(np.uint8)[None, :, None]
    y, x = (i * 5) % (SMALL[0] - 20), (i * 9) % (SMALL[1] - 20)
    small[y : y + 16, x : x + 16] = 230
    packet[:SMALL_BYTES] = small.reshape(-1)


def decode_frame(packet, frame):
    """Every pixel of the packet becomes a block of 8 x 8."""
    small = packet[:SMALL_BYTES].reshape(SMALL)
    blocks = frame.reshape(SMALL[0], 8, SMALL[1], 8, 3)
    blocks[...] = small[:, None, :, None, :]


def detector(image, boxes):
    """Resize, two convolutions, and boxes around the brightest places: rows of x, y, width, height, score."""
    small = image.reshape(SMALL[0], 8, SMALL[1], 8, 3)[:, ::4, :, ::4].mean(axis=(1, 3), dtype=np.float32) / 255
    hidden = np.maximum(_convolve(small, _FILTERS_1), 0)
    score = np.abs(_convolve(hidden, _FILTERS_2)[..., 0]) + 10 * small[2:-2, 2:-2].mean(axis=-1)
    found = np.zeros((MOST_BOXES, 5), np.float32)
    for row in found:
        y, x = np.unravel_index(score.argmax(), score.shape)
        row[:] = x * 8, y * 8, 160, 160, score[y, x]
        score[max(0, y - 16) : y + 16, max(0, x - 16) : x + 16] = -1
    boxes[: found.nbytes] = found.reshape(-1).view(np.uint8)


def draw_and_encode(frame, result):
    """The frame with its boxes drawn, as the iteration's result."""
    picture = frame.reshape(HEIGHT, WIDTH, 3).copy()
    boxes = result[: MOST_BOXES * 20].view(np.float32).reshape(MOST_BOXES, 5)
    for x, y, width, height in boxes[:, :4].astype(int):
        right, bottom = min(x + width, WIDTH) - 1, min(y + height, HEIGHT) - 1
        picture[y : bottom + 1, [x, right]] = (255, 0, 0)
        picture[[y, bottom], x : right + 1] = (255, 0, 0)
    return picture


def _convolve(image, filters):
    windows = np.lib.stride_tricks.sliding_window_view(image, filters.shape[:2], axis=(0, 1))
    return np.einsum("yxcij,ijcf->yxf", windows, filters, optimize=True)


def plain_loop(frames):
    """What the plan means: one operation after another, every frame in the same memory."""
    packet, frame = np.zeros(256 * 1024, np.uint8), np.zeros(HEIGHT * WIDTH * 3, np.uint8)
    boxes = np.zeros(40_000, np.uint8)
    for i in range(frames):
        receive_packet(packet, i)
        decode_frame(packet, frame)
        detector(frame, boxes)
        yield draw_and_encode(frame, boxes)
