//! Address pools, prefix pools and name servers.

use std::net::{IpAddr, Ipv4Addr};

use super::{Setting, Work};
use crate::document::Table;
use crate::report::Fate;

impl Work<'_> {
    pub(super) fn pools(&mut self) {
        for option in [
            "ip-pool gw-ip-address",
            "radius gw-ip-address",
            "chap-secrets gw-ip-address",
        ] {
            let Some((value, at)) = self.take(option) else {
                continue;
            };
            match value
                .split('/')
                .next()
                .and_then(|ip| ip.parse::<Ipv4Addr>().ok())
            {
                Some(ip) => self.once("ppp", "address", ip.to_string(), &at, option),
                None => self
                    .import
                    .report
                    .unknown(&at, option, "not an IPv4 address"),
            }
        }
        for option in ["ip-pool RANGE", "ip-pool tunnel"] {
            for setting in self.take_all(option) {
                self.pool(option, &setting);
            }
        }
        for (option, key) in [
            ("ipv6-pool PREFIX", "link_pool"),
            ("ipv6-pool delegate", "delegated_pool"),
        ] {
            for setting in self.take_all(option) {
                self.prefixes(option, key, &setting);
            }
        }
        self.name_servers();
    }

    /// A range of `[ip-pool]`: `FIRST-LAST,name=NAME,next=NAME`, or `RANGE,NAME`.
    fn pool(&mut self, option: &'static str, (value, at): &Setting) {
        let mut words = value.split(',').map(str::trim);
        let text = words.next().unwrap_or_default();
        let Some(range) = range(text) else {
            return self.import.report.unknown(
                at,
                option,
                "not of the form NETWORK/LENGTH or FIRST-OCTET",
            );
        };
        let (mut name, mut lost) = ("default", false);
        for word in words {
            match word.split_once('=') {
                Some(("name", given)) => name = given,
                None if !word.is_empty() => name = word,
                Some(_) | None => lost = true,
            }
        }
        let why = if lost {
            "headend has no pool for when this one is used up"
        } else {
            ""
        };
        self.import.report.key(at, option, &["pool.ranges"], why);
        self.grow("pool", name, &range, at);
    }

    /// Adds a range to the pool of that name.
    fn grow(&mut self, path: &str, name: &str, range: &str, at: &crate::Place) {
        let tables = &mut self.import.config.tables;
        let of = |table: &Table| table.path == path && table.get("name") == Some(&name.into());
        let known = tables.iter().position(of).unwrap_or_else(|| {
            let mut pool = Table::each(path);
            pool.set("name", name, std::slice::from_ref(at), "");
            tables.push(pool);
            tables.len() - 1
        });
        let pool = &mut tables[known];
        pool.add("ranges", range, at);
        if path == "pool" {
            pool.set(
                "skip_ends",
                false,
                &[],
                "accel-ppp leases every address of a range",
            );
        }
    }

    /// A prefix of `[ipv6-pool]`: `NETWORK/LENGTH,PREFIX-LENGTH,name=NAME`.
    fn prefixes(&mut self, option: &'static str, key: &str, (value, at): &Setting) {
        let mut words = value.split(',').map(str::trim);
        let network = words.next().and_then(crate::bgp::network);
        let length = words.next().and_then(|length| length.parse::<i64>().ok());
        let (Some(network), Some(length)) = (network, length) else {
            let why = "not of the form NETWORK/LENGTH,LENGTH";
            return self.import.report.unknown(at, option, why);
        };
        let named = words.find_map(|word| word.strip_prefix("name="));
        let name = named.unwrap_or(match key {
            "link_pool" => "links",
            _ => "homes",
        });
        self.grow("prefix_pool", name, &network, at);
        let of = |table: &&mut Table| {
            table.path == "prefix_pool" && table.get("name") == Some(&name.into())
        };
        if let Some(pool) = self.import.config.tables.iter_mut().find(of) {
            pool.set("length", length, std::slice::from_ref(at), "");
        }
        let mut keys = vec!["prefix_pool.ranges"];
        let whole = format!("ipv6.{key}");
        let ipv6 = self.import.config.table("ipv6");
        if ipv6.get(key).is_none() {
            ipv6.set(key, name, std::slice::from_ref(at), "");
            keys.push(&whole);
        }
        self.import.report.key(at, option, &keys, "");
    }

    fn name_servers(&mut self) {
        for option in ["dns dns1", "dns dns2"] {
            let Some((value, at)) = self.take(option) else {
                continue;
            };
            if value.parse::<Ipv4Addr>().is_err() {
                self.import
                    .report
                    .unknown(&at, option, "not an IPv4 address");
                continue;
            }
            self.import.config.table("ppp").add("dns", &value, &at);
            self.import.report.key(&at, option, &["ppp.dns"], "");
        }
        let mut servers = 0;
        for option in ["ipv6-dns ADDRESS", "ipv6-dns dns"] {
            for (value, at) in self.take_all(option) {
                for word in value.split(',').map(str::trim) {
                    if !matches!(word.parse(), Ok(IpAddr::V6(_))) {
                        self.import
                            .report
                            .unknown(&at, option, "not an IPv6 address");
                    } else if servers == 3 {
                        self.import
                            .report
                            .lost(&at, option, "headend has three name servers");
                    } else {
                        servers += 1;
                        self.import.config.table("ipv6").add("dns", word, &at);
                        self.import.report.key(&at, option, &["ipv6.dns"], "");
                    }
                }
            }
        }
        for (value, at) in self.take_all("ipv6-dns dnssl") {
            if value.is_empty() {
                let why = "no domain";
                self.import
                    .report
                    .line(&at, "ipv6-dns dnssl", Fate::NoEffect, why);
                continue;
            }
            self.import.config.table("ipv6").add("search", &value, &at);
            self.import
                .report
                .key(&at, "ipv6-dns dnssl", &["ipv6.search"], "");
        }
    }
}

/// `10.0.0.0/24` or `10.0.0.2-254`, as headend writes it. A network with an address of a host starts at that address, and
/// behind the dash is one octet: accel-ppp reads `10.0.0.2-10.0.0.254` as `10.0.0.2-10`.
fn range(text: &str) -> Option<String> {
    if let Some((first, length)) = text.split_once('/') {
        let first: Ipv4Addr = first.trim().parse().ok()?;
        let length: u32 = length
            .trim()
            .parse()
            .ok()
            .filter(|n| (1..=32).contains(n))?;
        let hosts = u32::MAX.checked_shr(length).unwrap_or(0);
        return Some(match first.to_bits() & hosts {
            0 => format!("{first}/{length}"),
            _ => format!("{first}-{}", Ipv4Addr::from_bits(first.to_bits() | hosts)),
        });
    }
    let (first, last) = text.split_once('-')?;
    let first: Ipv4Addr = first.trim().parse().ok()?;
    let [a, b, c, d] = first.octets();
    let digits = last.trim().split(|c: char| !c.is_ascii_digit()).next()?;
    let last: u8 = digits.parse().ok().filter(|last| *last >= d)?;
    Some(format!("{first}-{}", Ipv4Addr::new(a, b, c, last)))
}
