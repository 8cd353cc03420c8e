//! Limits with their units: "32 MiB", "1000 packets". tc's JSON has numbers without a unit, and its text has suffixes:
//! "10240p", "32Mb", "1514b".

/// Disciplines whose `limit` counts packets, and those whose `limit` counts bytes.
const IN_PACKETS: [&str; 14] = [
    "pfifo",
    "pfifo_head_drop",
    "fq_codel",
    "codel",
    "sfq",
    "pie",
    "fq",
    "fq_pie",
    "netem",
    "choke",
    "skbprio",
    "hhf",
    "sfb",
    "etf",
];
const IN_BYTES: [&str; 5] = ["bfifo", "tbf", "red", "gred", "plug"];

/// Options that count bytes, whatever the discipline.
const BYTES: [&str; 8] = [
    "memory_limit",
    "burst",
    "cburst",
    "peakburst",
    "quantum",
    "initial_quantum",
    "mtu",
    "mpu",
];

/// Bytes in the largest unit that divides them.
pub(super) fn bytes(count: u64) -> String {
    for (unit, name) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if count >= unit && count.is_multiple_of(unit) {
            return format!("{} {name}", count / unit);
        }
    }
    match count {
        1 => "1 byte".to_owned(),
        _ => format!("{count} bytes"),
    }
}

fn packets(count: u64) -> String {
    match count {
        1 => "1 packet".to_owned(),
        _ => format!("{count} packets"),
    }
}

/// A number of tc's JSON: the value of the option `key` of a discipline, class or action of this `kind`. `None` if it has
/// no unit.
pub(super) fn amount(kind: &str, key: &str, count: u64) -> Option<String> {
    match key {
        "limit" if IN_PACKETS.contains(&kind) => Some(packets(count)),
        "limit" if IN_BYTES.contains(&kind) => Some(bytes(count)),
        "min" | "max" if kind == "red" => Some(bytes(count)),
        key if BYTES.contains(&key) => Some(bytes(count)),
        _ => None,
    }
}

/// A word of tc's text, with its unit written out: "10240p" is "10240 packets".
pub(super) fn word(word: &str) -> String {
    let number = |suffix: &str| word.strip_suffix(suffix)?.parse::<u64>().ok();
    let scaled = |suffix: &str, scale: u64| number(suffix)?.checked_mul(scale);
    let found = scaled("Kb", 1 << 10).or_else(|| scaled("Mb", 1 << 20));
    let found = found.or_else(|| number("b")).map(bytes);
    found
        .or_else(|| number("p").map(packets))
        .unwrap_or_else(|| word.to_owned())
}

/// Each word of a line, with its unit written out.
pub(super) fn line(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().map(word).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_their_units() {
        assert_eq!(
            amount("fq_codel", "memory_limit", 33_554_432).as_deref(),
            Some("32 MiB")
        );
        assert_eq!(
            amount("pfifo", "limit", 1_000).as_deref(),
            Some("1000 packets")
        );
        assert_eq!(amount("bfifo", "limit", 30_720).as_deref(), Some("30 KiB"));
        assert_eq!(
            amount("fq_codel", "quantum", 1_514).as_deref(),
            Some("1514 bytes")
        );
        assert_eq!(amount("fq_codel", "flows", 1_024), None);
        assert_eq!(amount("unknown", "limit", 7), None);
    }

    #[test]
    fn text_and_json_of_tc_become_the_same_words() {
        assert_eq!(
            line("limit 10240p flows 1024 quantum 1514b memory_limit 32Mb rate 10Mbit burst 10Kb"),
            "limit 10240 packets flows 1024 quantum 1514 bytes memory_limit 32 MiB rate 10Mbit burst 10 KiB"
        );
        assert_eq!(
            line("limit 1p ecn b p 5ms 1.5Kb"),
            "limit 1 packet ecn b p 5ms 1.5Kb"
        );
    }
}
