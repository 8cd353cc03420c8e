//! `[link]`: rates, and what the link layer adds to each packet.

use toml::de::DeTable;

use super::reader::{At, Section};
use super::remark::Remarks;
use super::units::{self, Rate};
use crate::tree::Overhead;

/// Names for what link layers add to an IP packet: per packet, least packet, ATM. Bytes as tc-cake(8) has them.
const OVERHEADS: [(&str, Overhead); 11] = [
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

/// What `[link]` says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    pub(super) up: Option<At<u64>>,
    pub(super) down: Option<At<u64>>,
    pub(super) overhead: Overhead,
    /// Bytes of the longest IP packet.
    pub(super) mtu: u32,
}

pub(super) fn read(root: &DeTable<'_>, remarks: &mut Remarks<'_>) -> Link {
    let mut section = Section::open(root, "link", remarks);
    let up = section.parsed("up", units::rate, remarks);
    let down = section.parsed("down", units::rate, remarks);
    for (key, line_key, rate) in [("up", "line_up", up), ("down", "line_down", down)] {
        let line = section.parsed(line_key, units::rate, remarks);
        if let (Some(rate), Some(line)) = (rate, line) {
            check_rate(&section.key(key), rate, line.value, remarks);
        } else if let Some(line) = line.filter(|_| !section.has(key)) {
            let message = format!("is given, and {key} is not: nothing is shaped");
            let right = format!("give {key} = \"{}\" or less", Rate(line.value / 100 * 95));
            remarks.advise(line.at, &section.key(line_key), message, right);
        }
    }
    let overhead = overhead(&mut section, remarks);
    let mtu = section.integer("mtu", 68..=65_535, remarks);
    let mtu = mtu.map_or(1_500, |mtu| mtu.value);
    for (key, rate) in [("up", up), ("down", down)] {
        if let Some(rate) = rate {
            check_packet_time(&section.key(key), rate, overhead.on_line(mtu), remarks);
        }
    }
    section.finish(remarks);
    Link {
        up,
        down,
        overhead,
        mtu,
    }
}

/// Notes a rate at which a single packet takes more than a second: mostly its unit was forgotten.
fn check_packet_time(key: &str, rate: At<u64>, packet: u32, remarks: &mut Remarks<'_>) {
    let seconds = u64::from(packet) * 8 / rate.value;
    if seconds > 0 {
        let message = format!(
            "at {} a packet of {packet} octets takes {seconds} s",
            Rate(rate.value)
        );
        let right = format!("is it {0}kbit or {0}mbit?", rate.value);
        remarks.advise(rate.at, key, message, right);
    }
}

fn check_rate(key: &str, rate: At<u64>, line: u64, remarks: &mut Remarks<'_>) {
    let right = || format!("give {} (95 % of the line) or less", Rate(line / 100 * 95));
    if rate.value > line {
        let message = format!(
            "{} is more than the line carries ({}): packets queue where they cannot be ordered",
            Rate(rate.value),
            Rate(line)
        );
        remarks.fault(rate.at, key, message, right());
    } else if u128::from(rate.value) * 100 > u128::from(line) * 98 {
        let message = format!(
            "{} is above 98 % of the line ({}): the modem's own queue will fill now and then",
            Rate(rate.value),
            Rate(line)
        );
        remarks.advise(rate.at, key, message, right());
    }
}

fn overhead(section: &mut Section<'_, '_>, remarks: &mut Remarks<'_>) -> Overhead {
    if let Some(mut table) = section.table("overhead") {
        let per_packet = |text: &str| match text.parse() {
            Ok(octets @ -64..=256) => Ok(octets),
            _ => Err(format!(
                "\"{text}\" is no overhead; write octets from -64 to 256"
            )),
        };
        let per_packet = table.parsed("per_packet", per_packet, remarks);
        let mpu = table.integer("mpu", 0..=256, remarks);
        let atm = table.flag("atm", remarks);
        table.finish(remarks);
        return Overhead {
            per_packet: per_packet.map_or(0, |octets| octets.value),
            mpu: mpu.map_or(0, |octets| octets.value),
            atm: atm.is_some_and(|atm| atm.value),
        };
    }
    let given = section.choice("overhead", &OVERHEADS, remarks);
    given.map_or(named(38, 84, false), |given| given.value)
}
