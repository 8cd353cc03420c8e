//! Prefix pools: for any sequence of requests, no prefix has two holders, and none is lost.

use std::collections::BTreeMap;

use aaa::Prefix;
use aaa::pools::{Holder, Request};
use aaa::prefixes::{NewPrefixPools, PrefixPools, PrefixSpec};

/// Ranges, lengths and exclusions that the requests switch between.
const SHAPES: [(&str, u8, u8, &str, u8); 3] = [
    ("2001:db8::", 60, 64, "2001:db8:0:3::", 64),
    ("2001:db8::", 61, 64, "2001:db8::", 63),
    ("2001:db8::", 59, 62, "2001:db8:0:8::", 64),
];

fn prefix(address: &str, length: u8) -> Prefix {
    Prefix::new(address.parse().expect("an address"), length).expect("a prefix")
}

fn specs(shape: u8) -> Vec<PrefixSpec> {
    let (range, from, length, excluded, other) = SHAPES[usize::from(shape) % SHAPES.len()];
    vec![PrefixSpec {
        name: "a".into(),
        ranges: vec![prefix(range, from)],
        length,
        excluded: vec![prefix(excluded, other)],
        sticky: shape & 128 == 0,
    }]
}

/// Takes requests of three octets: the operation, the holder, and the prefix or user.
///
/// # Panics
/// If a prefix is held twice, or the counters disagree with the held prefixes.
pub fn target(data: &[u8]) {
    let mut pools = PrefixPools::new(1);
    pools.reload(specs(0)).expect("faultless");
    let mut held: BTreeMap<Prefix, Holder> = BTreeMap::new();
    for request in data.chunks_exact(3) {
        let &[what, who, which] = request else { return };
        let holder = Holder(u64::from(who));
        let length = if which & 64 == 0 { 64 } else { 62 };
        let address = format!(
            "2001:db8:0:{:x}::",
            which & 31 & if length == 64 { 31 } else { 28 }
        );
        let one = prefix(&address, length);
        match what % 6 {
            0 | 1 => {
                let request = Request {
                    pool: None,
                    holder,
                    user: &[which & 7],
                    sticky: what & 32 != 0,
                };
                let wish = (what & 64 != 0).then_some(one);
                let due = pools.look(&request, wish);
                let taken = pools.take(&request, wish).ok();
                assert_eq!(taken, due);
                if let Some(taken) = taken {
                    assert_eq!(held.insert(taken, holder), None, "{taken} twice");
                }
            }
            2 => {
                let claimed = pools.claim(one, holder);
                assert_eq!(claimed.is_ok(), !held.contains_key(&one));
                if claimed.is_ok() {
                    held.insert(one, holder);
                }
            }
            3 | 4 => {
                let is_its = held.get(&one) == Some(&holder);
                assert_eq!(pools.release(one, holder), is_its);
                if is_its {
                    held.remove(&one);
                }
            }
            _ if who & 1 == 0 => pools.reload(specs(which)).expect("faultless"),
            _ => {
                let new = NewPrefixPools::new(specs(which), |_| who & 2 == 0);
                pools.replace(new.expect("faultless"));
                pools.work(usize::from(who >> 2));
            }
        }
        let used: u32 = pools.views().map(|pool| pool.used).sum();
        assert_eq!(used as usize + pools.outside().held, held.len());
        for (one, holder) in &held {
            assert_eq!(pools.holder(*one), Some(*holder), "{one}");
        }
    }
}
