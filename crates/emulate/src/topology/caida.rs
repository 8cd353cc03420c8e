//! Reads AS relationships in the format that CAIDA publishes: lines of `a|b|-1` or `a|b|0`, each
//! optionally followed by a source.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};

use super::{LINKS_MAX, ROUTERS_MAX, Relation, RouterSettings, Tier, Topology};

/// Why a file of AS relationships was rejected.
#[derive(Debug, thiserror::Error)]
pub enum CaidaFault {
    /// A line has another format.
    #[error("line {line}: {what}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// Adds the networks and links of the file to `topology`. Networks are named as1, as2 and so on by
/// their AS numbers, in the order of the file.
pub(super) fn read(
    topology: &mut Topology,
    text: impl Read,
    settings: RouterSettings,
) -> Result<(), CaidaFault> {
    let mut known: HashMap<u32, u32> = HashMap::new();
    let mut seen: HashMap<(u32, u32), ()> = HashMap::new();
    for (number, line) in BufReader::new(text).lines().enumerate() {
        let line = line?;
        let fault = |what| CaidaFault::Line {
            line: number + 1,
            what,
        };
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (a, b, relation) = parse(&line).map_err(fault)?;
        let mut index = |asn: u32| match known.get(&asn) {
            Some(&index) => Ok(index),
            None if topology.routers.len() == ROUTERS_MAX => Err(fault("one network too many")),
            None => {
                let name = format!("as{asn}");
                let index = topology.add_router(name, asn, Tier::Stub, settings);
                let index = index.expect("a number that is new is a name that is new");
                known.insert(asn, index);
                Ok(index)
            }
        };
        let (a, b) = (index(a)?, index(b)?);
        if a == b {
            return Err(fault("a network has no relation with itself"));
        }
        if seen.insert((a.min(b), a.max(b)), ()).is_some() {
            return Err(fault("these two have a relation already"));
        }
        if topology.links.len() == LINKS_MAX {
            return Err(fault("one link too many"));
        }
        topology.join(a, b, relation);
        topology.lines.push(number as u32 + 1);
    }
    rank(topology);
    Ok(())
}

fn parse(line: &str) -> Result<(u32, u32, Relation), &'static str> {
    const FORM: &str = "is not of the form a|b|-1 or a|b|0";
    let mut fields = line.trim_end().split('|');
    let mut number = || {
        let number = fields.next()?.parse::<u32>().ok()?;
        (number != 0).then_some(number)
    };
    let (a, b) = (number().ok_or(FORM)?, number().ok_or(FORM)?);
    let relation = match fields.next() {
        Some("-1") => Relation::Customer,
        Some("0") => Relation::Peer,
        Some(_) | None => return Err(FORM),
    };
    Ok((a, b, relation))
}

/// Sets the tier of each network, from whether it has customers and providers.
fn rank(topology: &mut Topology) {
    let mut sides = vec![(false, false); topology.routers.len()];
    for link in &topology.links {
        if link.relation == Relation::Customer {
            sides[link.a as usize].0 = true;
            sides[link.b as usize].1 = true;
        }
    }
    for (router, (customers, providers)) in topology.routers.iter_mut().zip(sides) {
        router.tier = match (customers, providers) {
            (true, true) => Tier::Transit,
            (true, false) => Tier::Top,
            (false, _) => Tier::Stub,
        };
    }
}
