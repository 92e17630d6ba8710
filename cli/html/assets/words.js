// Numbers as people read them. Every figure of the data is in its plain unit: seconds, bytes, bytes per second.

function fixed(value, digits) {
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

// With about four significant digits, without zeros at the end.
function short(value) {
  return value.toLocaleString("en-US", { maximumSignificantDigits: 4 });
}

// Text in lines of at most so many letters, broken between words.
function wrapped(text, most) {
  return text.split(" ").reduce((made, word) => {
    const last = made.at(-1);
    if (last !== undefined && `${last} ${word}`.length <= most) return [...made.slice(0, -1), `${last} ${word}`];
    return [...made, word];
  }, []);
}

function timeWords(seconds) {
  const size = Math.abs(seconds);
  if (size === 0) return "0 s";
  if (size < 1e-6) return `${short(seconds * 1e9)} ns`;
  if (size < 1e-3) return `${short(seconds * 1e6)} µs`;
  if (size < 1) return `${short(seconds * 1e3)} ms`;
  return `${short(seconds)} s`;
}

function milliseconds(seconds) {
  return fixed(seconds * 1e3, 3);
}

function byteWords(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let power = 0;
  let value = bytes;
  while (Math.abs(value) >= 1000 && power + 1 < units.length) {
    value /= 1000;
    ++power;
  }
  return `${short(value)} ${units[power]}`;
}

// Sizes of messages, which are powers of two: "64 KiB", "256 MiB".
function sizeWords(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let power = 0;
  let value = bytes;
  while (value >= 1024 && power + 1 < units.length) {
    value /= 1024;
    ++power;
  }
  return `${short(value)} ${units[power]}`;
}

// The unit for memory of up to so many bytes: {size, name}.
function memoryUnit(bytes) {
  return bytes < 0.1 * 2 ** 30 ? { size: 2 ** 20, name: "MiB" } : { size: 2 ** 30, name: "GiB" };
}

function memoryWords(bytes) {
  const unit = memoryUnit(bytes);
  return `${fixed(bytes / unit.size, 2)} ${unit.name}`;
}

function rateWords(bytesPerSecond) {
  return `${short(bytesPerSecond / 1e9)} GB/s`;
}

function percentWords(fraction, digits = 1) {
  return `${fixed(fraction * 100, digits)} %`;
}

function changeWords(value, reference) {
  const change = value / reference - 1;
  return `${change > 0 ? "+" : ""}${percentWords(change)}`;
}

// Last gradients of segments, shortened if there are many.
function gradientList(cuts) {
  return cuts ? `${cuts.slice(0, 10).join(", ")}${cuts.length > 10 ? ", …" : ""}` : "–";
}
