"""Writes small files of ONNX byte by byte, without the onnx package: write_onnx.py NAME FILE."""
import struct
import sys


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def data(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


class Writer:
    def __init__(self, operator_set=17):
        self.graph, self.operator_set = b"", operator_set

    def value(self, field, name, dims, element_type=1):
        shape = b"".join(data(1, data(2, d) if isinstance(d, str) else number(1, d)) for d in dims)
        self.graph += data(field, data(1, name) + data(2, data(1, number(1, element_type) + data(2, shape))))

    def input(self, name, dims, element_type=1):
        self.value(11, name, dims, element_type)

    def output(self, name):
        self.graph += data(12, data(1, name) + data(2, data(1, number(1, 1))))

    def weight(self, name, dims):
        """Its numbers are in a file that does not exist."""
        place = data(13, data(1, "location") + data(2, "weights.bin")) + number(14, 1)
        self.graph += data(5, b"".join(number(1, d) for d in dims) + number(2, 1) + data(8, name) + place)
        return name

    def node(self, kind, name, inputs, output=None, domain="", **attributes):
        output = output or name + ":out"
        node = b"".join(data(1, i) for i in inputs) + data(2, output) + data(3, name) + data(4, kind)
        for key, value in attributes.items():
            if isinstance(value, list):
                node += data(5, data(1, key) + b"".join(number(8, v) for v in value) + number(20, 7))
            elif isinstance(value, float):
                node += data(5, data(1, key) + varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1))
            else:
                node += data(5, data(1, key) + number(3, value) + number(20, 2))
        self.graph += data(1, node + (data(7, domain) if domain else b""))
        return output

    def save(self, path):
        model = number(1, 8) + data(7, self.graph + data(2, "g")) + data(8, data(1, "") + number(2, self.operator_set))
        with open(path, "wb") as file:
            file.write(model)


def conv(w, name, x, channels, into, kernel, stride):
    pad = kernel // 2
    return w.node("Conv", name, [x, w.weight(name + ".weight", [into, channels, kernel, kernel])],
                  kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)


def norm(w, name, x, channels):
    return w.node("BatchNormalization", name,
                  [x] + [w.weight(f"{name}.{part}", [channels]) for part in ("weight", "bias", "running_mean", "running_var")])


def resnet50():
    w = Writer()
    w.input("image", ["N", 3, 224, 224])
    x = w.node("Relu", "relu", [norm(w, "bn1", conv(w, "conv1", "image", 3, 64, 7, 2), 64)])
    x = w.node("MaxPool", "maxpool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for layer, blocks in enumerate((3, 4, 6, 3), start=1):
        width = 32 << layer
        for block in range(blocks):
            p, stride = f"layer{layer}.{block}.", 2 if layer > 1 and block == 0 else 1
            y = w.node("Relu", p + "relu1", [norm(w, p + "bn1", conv(w, p + "conv1", x, channels, width, 1, 1), width)])
            y = w.node("Relu", p + "relu2", [norm(w, p + "bn2", conv(w, p + "conv2", y, width, width, 3, stride), width)])
            y = norm(w, p + "bn3", conv(w, p + "conv3", y, width, 4 * width, 1, 1), 4 * width)
            if block == 0:
                x = norm(w, p + "downsample.1", conv(w, p + "downsample.0", x, channels, 4 * width, 1, stride), 4 * width)
            channels = 4 * width
            x = w.node("Relu", p + "relu3", [w.node("Add", p + "add", [y, x])])
    x = w.node("Flatten", "flatten", [w.node("GlobalAveragePool", "avgpool", [x])])
    w.node("Gemm", "fc", [x, w.weight("fc.weight", [1000, 2048]), w.weight("fc.bias", [1000])], "logits", transB=1)
    w.output("logits")
    return w


def perceptron(operator_set=17, batch="N", **changes):
    w = Writer(operator_set)
    w.input("x", [batch, 784])
    x = w.node("Gemm", "hidden", [changes.get("reads", "x"), w.weight("hidden.weight", changes.get("shape", [512, 784])),
                                  w.weight("hidden.bias", [512])], transB=1)
    x = w.node("Fancy", "odd", [x], domain="com.example") if changes.get("odd") else w.node("Relu", "relu", [x])
    w.node("Gemm", "out", [x, w.weight("out.weight", [10, 512]), w.weight("out.bias", [10])], "logits", transB=1)
    w.output("logits")
    return w


def sequences():
    """Rows of sequences with a sigmoid, which the zoo has not, and a product of two tensors."""
    w = Writer()
    w.input("x", ["N", "length", 64])
    a = w.node("Sigmoid", "gate", [w.node("MatMul", "a", ["x", w.weight("a.weight", [64, 64])])])
    turned = w.node("Transpose", "turned", [a], perm=[0, 2, 1])
    scores = w.node("MatMul", "scores", [a, turned])
    w.node("MatMul", "head", [w.node("MatMul", "mixed", [scores, a]), w.weight("head.weight", [64, 32])], "logits")
    w.output("logits")
    return w


NETWORKS = {
    "resnet50": resnet50,
    "mlp": perceptron,
    "odd": lambda: perceptron(odd=True),
    "new": lambda: perceptron(operator_set=23),
    "fixed": lambda: perceptron(batch=4),
    "missing": lambda: perceptron(reads="nobody"),
    "shapes": lambda: perceptron(shape=[512, 700]),
    "sequences": sequences,
}

if __name__ == "__main__":
    NETWORKS[sys.argv[1]]().save(sys.argv[2])
