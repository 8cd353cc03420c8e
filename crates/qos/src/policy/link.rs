//! `[link]`: its rates, and the bytes that the link layer adds to each packet.

use settings::{At, Notes, Section};
use toml::de::DeTable;

use super::units::{self, Rate};
use crate::tree::Overhead;

/// Link layers by name: the bytes they add to an IP packet, their smallest packet, and ATM framing. Values are those of
/// tc-cake(8).
pub const OVERHEADS: [(&str, Overhead); 11] = [
    ("none", named(0, 0, false)),
    ("ethernet", named(38, 84, false)),
    ("ethernet-vlan", named(42, 88, false)),
    ("pppoe", named(46, 84, false)),
    ("pppoe-ptm", named(30, 0, false)),
    ("bridged-ptm", named(22, 0, false)),
    ("docsis", named(18, 64, false)),
    ("atm-pppoa", named(10, 0, true)),
    ("atm-pppoe", named(40, 0, true)),
    ("atm-bridged", named(32, 0, true)),
    ("atm-ipoa", named(16, 0, true)),
];

const fn named(per_packet: i32, mpu: u32, atm: bool) -> Overhead {
    Overhead {
        per_packet,
        mpu,
        atm,
    }
}

/// The settings of `[link]`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    pub(super) up: Option<At<u64>>,
    pub(super) down: Option<At<u64>>,
    /// What the line itself carries up and down, in bits per second, if the file says so.
    pub(super) lines: [Option<u64>; 2],
    pub(super) overhead: Overhead,
    /// Length of the longest IP packet, in bytes.
    pub(super) mtu: u32,
}

pub(super) fn read(root: &DeTable<'_>, notes: &Notes<'_>) -> Link {
    let mut section = Section::open(root, "link", notes);
    let up = section.written("up", units::rate);
    let down = section.written("down", units::rate);
    let mut lines = [None; 2];
    let keys = [("up", "line_up", up), ("down", "line_down", down)];
    for ((key, line_key, rate), kept) in keys.into_iter().zip(&mut lines) {
        let line = section.written(line_key, units::rate);
        *kept = line.map(|line| line.value);
        if let (Some(rate), Some(line)) = (rate, line) {
            check_rate(&section.path(key), rate, line.value, notes);
        } else if let Some(line) = line.filter(|_| !section.has(key)) {
            let message = format!("is given, and {key} is not: nothing is shaped");
            let right = format!("give {key} = \"{}\" or less", Rate(line.value / 100 * 95));
            notes.advise(line.at, section.path(line_key), (message, right));
        }
    }
    let overhead = overhead(&mut section);
    let mtu = section.written("mtu", units::whole(68..=65_535));
    let mtu = mtu.map_or(1_500, |mtu| mtu.value);
    for (key, rate) in [("up", up), ("down", down)] {
        if let Some(rate) = rate {
            check_packet_time(&section.path(key), rate, overhead.on_line(mtu), notes);
        }
    }
    section.finish();
    Link {
        up,
        down,
        lines,
        overhead,
        mtu,
    }
}

/// Reports a rate at which a single packet takes more than a second. The usual cause is a missing unit.
fn check_packet_time(key: &str, rate: At<u64>, packet: u32, notes: &Notes<'_>) {
    let seconds = u64::from(packet) * 8 / rate.value;
    if seconds > 0 {
        let message = format!(
            "at {} a packet of {packet} octets takes {seconds} s",
            Rate(rate.value)
        );
        let right = format!("is it {0}kbit or {0}mbit?", rate.value);
        notes.advise(rate.at, key, (message, right));
    }
}

fn check_rate(key: &str, rate: At<u64>, line: u64, notes: &Notes<'_>) {
    let right = || format!("give {} (95 % of the line) or less", Rate(line / 100 * 95));
    if rate.value > line {
        let message = format!(
            "{} is more than the line carries ({}): packets queue where they cannot be ordered",
            Rate(rate.value),
            Rate(line)
        );
        notes.at(rate.at, key, (message, right()));
    } else if u128::from(rate.value) * 100 > u128::from(line) * 98 {
        let message = format!(
            "{} is above 98 % of the line ({}): the modem's own queue will fill now and then",
            Rate(rate.value),
            Rate(line)
        );
        notes.advise(rate.at, key, (message, right()));
    }
}

fn overhead(section: &mut Section<'_>) -> Overhead {
    if let Some(mut table) = section.table("overhead") {
        let per_packet = |text: &str| match text.parse() {
            Ok(octets @ -64..=256) => Ok(octets),
            _ => Err(format!(
                "\"{text}\" is no overhead; write octets from -64 to 256"
            )),
        };
        let per_packet = table.written("per_packet", per_packet);
        let mpu = table.written("mpu", units::whole(0..=256));
        let atm = table.flag("atm");
        table.finish();
        return Overhead {
            per_packet: per_packet.map_or(0, |octets| octets.value),
            mpu: mpu.map_or(0, |octets| octets.value),
            atm: atm.is_some_and(|atm| atm.value),
        };
    }
    let given = section.choice("overhead", &OVERHEADS);
    given.map_or(named(38, 84, false), |given| given.value)
}
