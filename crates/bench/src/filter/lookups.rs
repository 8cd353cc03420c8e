//! The filter of 2004 that looks up a protocol's name in a file for each packet, the fix for it,
//! and our filter.

use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::net::UnixDatagram;

use anyhow::{Context, Result};
use base::Duration;
use filter::{Direction, Filter, FilterSet, Hits, Names as Table, describe};
use lab::history::{FilterRun, Names};
use lab::plot::number::grouped;
use reactor::{clock, usage};
use wire::ip::Header;

const PROTOCOLS: &str = "/etc/protocols";

/// How much is measured.
#[derive(Clone, Copy)]
pub(crate) struct Rounds {
    /// Packets of a round.
    packets: u32,
    /// Rounds of each variant, in turn.
    rounds: u32,
}

impl Rounds {
    pub(crate) const QUICK: Rounds = Rounds {
        packets: 20_000,
        rounds: 1,
    };
    pub(crate) const FULL: Rounds = Rounds {
        packets: 250_000,
        rounds: 3,
    };

    /// How the measurement was done, as text.
    pub(crate) fn method(self) -> String {
        format!(
            "Names: {} packets a round, {} rounds of each way in turn, of which the one with the least user and system time is kept.",
            grouped(f64::from(self.packets), 0),
            self.rounds
        )
    }
}

/// Results.
pub(crate) struct Measured {
    pub(crate) runs: Vec<FilterRun>,
    /// Nanoseconds of a function call.
    pub(crate) call_ns: f64,
    /// Nanoseconds of a system call.
    pub(crate) system_call_ns: f64,
}

/// The rules of a typical household.
const RULES: &str = "filter x
in
    deny tcp from any to any port 25 log
    deny udp from any to any port 135-139,445
    deny tcp from any to any port 135-139,445
    deny ip from 127.0.0.0/8 to any
    deny ip from 169.254.0.0/16 to any
    deny ip from any to 192.168.0.0/16
    deny ip from any to 172.16.0.0/12
    deny tcp from any to any flags /FSRPAU
    deny tcp from any to any flags SF/SF
    deny ip from any to any fragment
    accept tcp from 10.0.0.0/8 to 192.0.2.53 port domain
    accept udp from 10.0.0.0/8 to 192.0.2.53 port domain
    deny udp from any to any port domain
    accept udp from 10.0.0.0/8 to any port ntp
    accept icmp from 10.0.0.0/8 to any icmp-type 8
    deny icmp from any to any
    accept tcp from any to any established log
    accept tcp from 10.0.0.0/8 to any port 80,443
    accept udp from 10.0.0.0/8 to any port 443
    deny gre from any to any
    default deny
";

/// A packet's bytes; callers change some of them.
const PACKET: [u8; 100] = {
    let mut octets = [0; 100];
    octets[0] = 0x45;
    octets[3] = 100;
    octets[8] = 64;
    octets[12] = 10;
    octets[15] = 7;
    octets[16] = 198;
    octets[17] = 51;
    octets[18] = 100;
    octets[19] = 9;
    // From port 5000 to 443.
    octets[20] = 0x13;
    octets[21] = 0x88;
    octets[22] = 0x01;
    octets[23] = 0xbb;
    octets[32] = 0x50;
    octets[33] = 0x10;
    octets
};

/// Seven of ten packets are TCP, two UDP, one ICMP, in an order that takes long to repeat.
fn protocol(number: u32) -> u8 {
    match number.wrapping_mul(2_654_435_761) >> 16 & 0x3ff {
        0..717 => 6,
        717..922 => 17,
        _ => 1,
    }
}

/// One variant of matching packets and logging them.
struct Way<'f> {
    names: Names,
    log: bool,
    filter: &'f Filter,
    hits: Hits,
    table: &'f Table,
    /// The protocol looked up last, and its name.
    kept: Option<(u8, String)>,
    /// The file that the log goes to.
    sink: File,
    /// Number of system calls made.
    calls: u64,
}

impl Way<'_> {
    /// Matches a packet.
    fn judge(&mut self, packet: &Header) -> Result<()> {
        match self.names {
            Names::None => {}
            Names::PerPacket => {
                let name = self.look_up(packet.protocol)?;
                let rule = self.walk(packet);
                if self.log {
                    self.tell(&old_text(packet, &name, rule))?;
                }
                black_box(name);
            }
            Names::Cached => {
                let rule = self.walk(packet);
                if self.log {
                    if self
                        .kept
                        .as_ref()
                        .is_none_or(|(of, _)| *of != packet.protocol)
                    {
                        self.kept = Some((packet.protocol, self.look_up(packet.protocol)?));
                    }
                    let name = self.kept.as_ref().map_or("", |(_, name)| name.as_str());
                    let text = old_text(packet, name, rule);
                    self.tell(&text)?;
                }
            }
            Names::Table => {
                let verdict = self.filter.matches(packet, Direction::In);
                self.hits.count(self.filter, verdict);
                if self.log {
                    let mut text = describe(packet, self.table);
                    text.push('\n');
                    self.tell(&text)?;
                }
            }
        }
        Ok(())
    }

    /// Tries one rule after another, as the filter of 2004 did.
    fn walk(&self, packet: &Header) -> usize {
        let rules = self.filter.rules(Direction::In);
        let found = rules.iter().position(|rule| rule.matches(packet));
        black_box(found).unwrap_or(rules.len())
    }

    /// Works as getprotobynumber() does: opens the file, reads until it finds the protocol's line,
    /// and closes it.
    fn look_up(&mut self, protocol: u8) -> Result<String> {
        let mut file = File::open(PROTOCOLS)?;
        self.calls += 1;
        let mut text = Vec::new();
        let mut chunk = [0; 4_096];
        let name = loop {
            let read = file.read(&mut chunk)?;
            self.calls += 1;
            text.extend_from_slice(&chunk[..read]);
            let whole = String::from_utf8_lossy(&text);
            if let Some(name) = name_in(&whole, protocol, read == 0) {
                break name.to_owned();
            }
            if read == 0 {
                break protocol.to_string();
            }
        };
        drop(file);
        self.calls += 1;
        Ok(name)
    }

    fn tell(&mut self, text: &str) -> Result<()> {
        self.sink.write_all(text.as_bytes())?;
        self.calls += 1;
        Ok(())
    }
}

/// A protocol's name in a part of the file whose last line may be incomplete.
fn name_in(text: &str, protocol: u8, is_all: bool) -> Option<&str> {
    let lines = text.split_inclusive('\n');
    let mut lines = lines.filter(|line| is_all || line.ends_with('\n'));
    lines.find_map(|line| {
        let line = line.split('#').next().unwrap_or("");
        let mut words = line.split_whitespace();
        let name = words.next()?;
        let number: u8 = words.next()?.parse().ok()?;
        (number == protocol).then_some(name)
    })
}

/// A log line with a known name.
fn old_text(packet: &Header, name: &str, rule: usize) -> String {
    format!(
        "{name} {}:{} > {}:{} rule {rule}\n",
        packet.source_address(),
        packet.source_port,
        packet.destination_address(),
        packet.destination_port
    )
}

/// Measures all variants.
///
/// # Errors
/// No /etc/protocols, or no sockets.
pub(crate) fn measure(rounds: Rounds) -> Result<Measured> {
    let protocols = std::fs::read_to_string(PROTOCOLS)
        .with_context(|| format!("{PROTOCOLS}, which the old filter reads"))?;
    let table = Table::read(&protocols, "");
    let Ok((set, _)) = FilterSet::parse(RULES, &table) else {
        anyhow::bail!("the benchmark's own rules are wrong");
    };
    let filter = super::rules::only(&set)?;
    let mut runs: Vec<FilterRun> = Vec::new();
    for _ in 0..rounds.rounds {
        for log in [false, true] {
            for names in Names::ALL {
                if log && names == Names::None {
                    continue;
                }
                let way = Way {
                    names,
                    log,
                    filter,
                    hits: Hits::new(&set),
                    table: &table,
                    kept: None,
                    sink: File::options().write(true).open("/dev/null")?,
                    calls: 0,
                };
                let run = round(way, rounds.packets)?;
                let before = runs
                    .iter_mut()
                    .find(|run| run.names == names && run.log == log);
                let spent = |run: &FilterRun| run.user_ns + run.system_ns;
                match before {
                    Some(before) if spent(before) <= spent(&run) => {}
                    Some(before) => *before = run,
                    None => runs.push(run),
                }
            }
        }
    }
    Ok(Measured {
        runs,
        call_ns: per_call(20_000_000, || {
            black_box(function(black_box(1)));
        }),
        system_call_ns: per_call(500_000, || {
            black_box(rustix::process::getppid());
        }),
    })
}

/// Sends packets through one variant.
fn round(mut way: Way<'_>, packets: u32) -> Result<FilterRun> {
    let (near, far) = UnixDatagram::pair().context("a pair of sockets")?;
    let mut packet = PACKET;
    let mut received = [0; 2_048];
    let before = usage::of_this_process();
    for number in 0..packets {
        packet[9] = protocol(number);
        near.send(&packet)?;
        let length = far.recv(&mut received)?;
        way.calls += 2;
        if let Ok(header) = &Header::read(&received[..length]) {
            way.judge(header)?;
        }
    }
    let after = usage::of_this_process();
    let per_packet = |before: Duration, after: Duration| {
        (after.as_nanos() - before.as_nanos()) as f64 / f64::from(packets)
    };
    Ok(FilterRun {
        names: way.names,
        log: way.log,
        user_ns: per_packet(before.user, after.user),
        system_ns: per_packet(before.system, after.system),
        calls: way.calls as f64 / f64::from(packets),
    })
}

#[inline(never)]
fn function(number: u32) -> u32 {
    black_box(number) + 1
}

/// Nanoseconds of a call, the minimum of five measurements.
fn per_call(count: u32, mut call: impl FnMut()) -> f64 {
    let times = (0..5).map(|_| {
        let start = clock::now();
        for _ in 0..count / 5 {
            call();
        }
        clock::now().since(start).as_nanos()
    });
    times.min().unwrap_or(0) as f64 / f64::from(count / 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_in_what_was_read_so_far() {
        let text = "# protocols\nip 0 IP\ntcp 6 TCP # t\nudp 17 U";
        assert_eq!(name_in(text, 6, false), Some("tcp"));
        assert_eq!(name_in(text, 17, false), None);
        assert_eq!(name_in(text, 17, true), Some("udp"));
        assert_eq!(name_in(text, 99, true), None);
    }

    #[test]
    fn every_way_judges_the_same_and_only_the_old_one_calls_for_names() {
        let table = Table::well_known();
        let (set, _) = FilterSet::parse(RULES, &table).expect("rules");
        let filter = crate::filter::rules::only(&set).expect("one");
        assert_eq!(filter.rules(Direction::In).len(), 20);
        let calls = |names, log| {
            let way = Way {
                names,
                log,
                filter,
                hits: Hits::new(&set),
                table: &table,
                kept: None,
                sink: File::options()
                    .write(true)
                    .open("/dev/null")
                    .expect("it is there"),
                calls: 0,
            };
            round(way, 100).expect("packets pass").calls
        };
        assert_eq!(calls(Names::None, false), 2.0);
        assert_eq!(calls(Names::Cached, false), 2.0);
        assert_eq!(calls(Names::Table, false), 2.0);
        assert_eq!(calls(Names::Table, true), 3.0);
        for number in 0..100 {
            let mut octets = PACKET;
            octets[9] = protocol(number);
            let header = Header::read(&octets).expect("a packet");
            let first = filter
                .rules(Direction::In)
                .iter()
                .position(|rule| rule.matches(&header));
            let verdict = filter.matches(&header, Direction::In);
            assert_eq!(verdict.rule as usize, first.unwrap_or(20));
        }
    }
}
