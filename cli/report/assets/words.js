// Numbers as people read them. Every figure of the data is in its plain unit: seconds, bytes, bytes per second.

function fixed(value, digits) {
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

// With about four significant digits, without zeros at the end.
function short(value) {
  return value.toLocaleString("en-US", { maximumSignificantDigits: 4 });
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

function memoryWords(bytes) {
  return `${fixed(bytes / 2 ** 30, 2)} GiB`;
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
