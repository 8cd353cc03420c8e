//! Reads the actions of filters from tc's JSON or text: what they do, and what they counted.

use super::loose::Item;
use super::model::Numbers;
use super::record::{NOISE, Record, dropped, flat, leading, pair};
use super::units;

/// Reads an action, or the options of a filter that contain one.
pub(super) fn read(item: &Item, record: &mut Record) {
    let Item::Object(members) = item else {
        record.lines.push(flat(item));
        return;
    };
    let kind = item.text("kind").unwrap_or_default();
    let mut words = vec!["action".to_owned()];
    let before = |(key, _): &&(String, Item)| key != "kind";
    for (key, value) in members.iter().skip_while(before) {
        match (key.as_str(), value) {
            ("kind" | "mirred_action" | "direction", Item::Text(text)) => words.push(text.clone()),
            ("to_dev", Item::Text(text)) => {
                words.push(format!("to {text}"));
                record.devices.push(text.clone());
            }
            ("control_action", _) => {
                if let Some(chain) = value.text("chain") {
                    record.goto = chain.parse().ok();
                }
                words.push(control(value));
            }
            ("prob", Item::Object(_)) if value.text("random_type") == Some("none") => {}
            ("stats", Item::Object(_)) => {
                let number = |key| {
                    value
                        .text(key)
                        .and_then(|text| text.parse().ok())
                        .unwrap_or(0)
                };
                count(
                    record,
                    Numbers {
                        bytes: number("bytes"),
                        packets: number("packets"),
                        drops: number("drops"),
                        overlimits: number("overlimits"),
                        ..Numbers::default()
                    },
                );
            }
            ("", Item::Text(text)) if text.starts_with("Sent ") => sent(text, record),
            ("overhead", Item::Text(text)) if text == "0" => {}
            (key, _) if NOISE.contains(&key) => {}
            (key, Item::Text(text)) => {
                let amount = text
                    .parse()
                    .ok()
                    .and_then(|count| units::amount(kind, key, count));
                words.push(
                    amount.map_or_else(|| pair(key, value), |amount| format!("{key} {amount}")),
                );
            }
            (key, value) => words.push(pair(key, value)),
        }
    }
    record.lines.push(words.join(" "));
}

/// What happens to a packet after an action: "pass", "goto chain 5".
pub(super) fn control(item: &Item) -> String {
    let kind = item.text("type").unwrap_or("?");
    match item.text("chain") {
        Some(chain) => format!("{kind} chain {chain}"),
        None => kind.to_owned(),
    }
}

/// The words of tc's text behind "police 0x1", with units: "rate 1Mbit burst 10Kb mtu 2Kb action drop overhead 0b".
pub(super) fn police(words: &[&str]) -> String {
    let mut line = "action police".to_owned();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "action" => {}
            "overhead" => {
                if let Some(amount) = words.next().filter(|amount| **amount != "0b") {
                    line += &format!(" overhead {}", units::word(amount));
                }
            }
            word => {
                line.push(' ');
                line += &units::word(word);
            }
        }
    }
    line
}

/// Adds the counters of a line "Sent 56 bytes 1 pkt (dropped 0, overlimits 0 requeues 0)".
pub(super) fn sent(line: &str, record: &mut Record) {
    let words: Vec<&str> = line.split_whitespace().collect();
    if let ["Sent", bytes, "bytes", packets, _, rest @ ..] = words.as_slice() {
        let mut numbers = Numbers {
            bytes: leading(bytes),
            packets: leading(packets),
            ..Numbers::default()
        };
        dropped(rest, &mut numbers);
        count(record, numbers);
    }
}

/// Adds an action's counters. A packet passes the actions one after the other, so the first saw the most packets.
fn count(record: &mut Record, own: Numbers) {
    let sum = record.numbers.get_or_insert_default();
    sum.bytes = sum.bytes.max(own.bytes);
    sum.packets = sum.packets.max(own.packets);
    sum.drops = sum.drops.saturating_add(own.drops);
    sum.overlimits = sum.overlimits.saturating_add(own.overlimits);
}
