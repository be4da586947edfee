// Numbers as people read them: counts, bytes, times.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });
const zones = new Intl.DateTimeFormat("en-US", { timeZoneName: "short" });

/** A count of things, with its noun. */
export function counted(number, noun, plural = `${noun}s`) {
  return `${whole.format(number)} ${number === 1 ? noun : plural}`;
}

/** A size in bytes. */
export function sized(bytes) {
  if (bytes < 1e3) {
    return `${whole.format(bytes)} B`;
  }
  return bytes < 1e6 ? `${tenths.format(bytes / 1e3)} KB` : `${tenths.format(bytes / 1e6)} MB`;
}

/** A time between two steps, from milliseconds. */
export function lasted(milliseconds) {
  const steps = [
    [1e3, 1, "ms"],
    [6e4, 1e3, "s"],
    [3.6e6, 6e4, "min"],
    [8.64e7, 3.6e6, "h"],
    [Infinity, 8.64e7, "d"],
  ];
  const [, unit, name] = steps.find(([end]) => milliseconds < end);
  const value = milliseconds / unit;
  return `${value < 10 && unit > 1 ? tenths.format(value) : whole.format(value)} ${name}`;
}

/** A moment in the reader's zone, to the second. */
export function moment(iso) {
  const when = new Date(iso);
  if (Number.isNaN(when.getTime())) {
    return "at an unknown time";
  }
  const local = new Date(when.getTime() - when.getTimezoneOffset() * 6e4).toISOString();
  const zone = zones.formatToParts(when).find(({ type }) => type === "timeZoneName");
  return `${local.slice(0, 19).replace("T", " ")} ${zone.value}`;
}
