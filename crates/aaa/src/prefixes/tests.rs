use std::collections::HashMap as Map;

use proptest::prelude::*;

use super::*;

fn prefix(text: &str) -> Prefix {
    let (address, length) = text.split_once('/').unwrap();
    Prefix::new(address.parse().unwrap(), length.parse().unwrap()).unwrap()
}

fn spec(ranges: &[&str], length: u8, excluded: &[&str], sticky: bool) -> PrefixSpec {
    PrefixSpec {
        name: "homes".into(),
        ranges: ranges.iter().map(|text| prefix(text)).collect(),
        length,
        excluded: excluded.iter().map(|text| prefix(text)).collect(),
        sticky,
    }
}

fn pools(spec: PrefixSpec) -> PrefixPools {
    let mut pools = PrefixPools::new(7);
    pools.reload(vec![spec]).unwrap();
    pools
}

fn request(holder: u64, user: &[u8]) -> Request<'_> {
    Request {
        pool: None,
        holder: Holder(holder),
        user,
        sticky: false,
    }
}

#[test]
fn prefixes_of_the_length_come_in_order_without_the_excluded_ones() {
    let excluded = ["2001:db8::/55", "2001:db8:0:380::/64"];
    let mut pools = pools(spec(
        &["2001:db8::/53", "2001:db8:1::/55"],
        56,
        &excluded,
        false,
    ));
    let mut all = Vec::new();
    while let Ok(one) = pools.take(&request(all.len() as u64, b""), None) {
        all.push(one.to_string());
    }
    let due = [
        "2001:db8:0:200::/56",
        "2001:db8:0:400::/56",
        "2001:db8:0:500::/56",
        "2001:db8:0:600::/56",
        "2001:db8:0:700::/56",
        "2001:db8:1::/56",
        "2001:db8:1:100::/56",
    ];
    assert_eq!(all, due);
    let view = pools.views().next().unwrap();
    assert_eq!((view.size, view.used, view.full), (10, 7, 1));
}

#[test]
fn a_user_gets_its_prefix_again_and_another_only_when_nothing_else_is_free() {
    let mut pools = pools(spec(&["2001:db8::/62"], 64, &[], true));
    let first = pools.take(&request(1, b"alice"), None).unwrap();
    assert!(pools.release(first, Holder(1)));
    for (holder, user) in [(2, b"bob" as &[u8]), (3, b"carol"), (4, b"dave")] {
        assert_ne!(pools.take(&request(holder, user), None), Ok(first));
    }
    assert_eq!(pools.look(&request(5, b"alice"), None), Some(first));
    assert_eq!(pools.take(&request(5, b"alice"), None), Ok(first));
    pools.release(first, Holder(5));
    assert_eq!(
        pools.take(&request(6, b"eve"), None),
        Ok(first),
        "the last one"
    );
    assert_eq!(pools.take(&request(7, b"alice"), None), Err(Fault::Full));
    assert_eq!(pools.views().next().unwrap().came_back, 1);
}

#[test]
fn a_wish_is_granted_if_its_prefix_is_next_or_free_and_of_no_other_user() {
    let mut pools = pools(spec(&["2001:db8::/60"], 64, &[], false));
    let seen = pools.look(&request(1, b"a"), None);
    assert_eq!(pools.take(&request(1, b"a"), seen).ok(), seen);
    let second = pools.take(&request(2, b"b"), None).unwrap();
    let third = pools.take(&request(3, b"c"), None).unwrap();
    pools.release(second, Holder(2));
    pools.release(third, Holder(3));
    assert_eq!(pools.take(&request(4, b"d"), Some(third)), Ok(third));
    let foreign = Some(prefix("2001:db9::/64"));
    assert_eq!(pools.take(&request(5, b"e"), foreign), Ok(second));
}

/// After a restart the pool knows no user, but the user's router knows its prefix.
#[test]
fn a_wish_for_a_prefix_that_was_never_leased_is_granted_and_excluded_ones_are_not() {
    let mut pools = pools(spec(&["2001:db8::/60"], 64, &["2001:db8:0:c::/64"], false));
    let [wish, excluded] = ["2001:db8:0:9::/64", "2001:db8:0:c::/64"].map(prefix);
    assert_eq!(pools.look(&request(1, b"a"), Some(wish)), Some(wish));
    assert_eq!(pools.take(&request(1, b"a"), Some(wish)), Ok(wish));
    let first = prefix("2001:db8::/64");
    assert_eq!(pools.take(&request(2, b"b"), Some(wish)), Ok(first), "held");
    let other = pools.take(&request(3, b"c"), Some(excluded)).unwrap();
    assert_eq!(other, prefix("2001:db8:0:1::/64"));
    assert!(pools.release(wish, Holder(1)));
    let rest: Vec<Prefix> = (4..20)
        .map_while(|holder| pools.take(&request(holder, b""), None).ok())
        .collect();
    assert_eq!(rest.len(), 13, "each of the others, once");
    assert!(rest.contains(&wish) && !rest.contains(&excluded));
}

#[test]
fn a_claimed_prefix_is_leased_to_nobody_else() {
    let mut pools = pools(spec(&["2001:db8::/62"], 64, &["2001:db8::/64"], false));
    let fixed = prefix("2001:db8:0:1::/64");
    let excluded = prefix("2001:db8::/64");
    let outside = prefix("2001:db8:7::/48");
    for one in [fixed, excluded, outside] {
        assert_eq!(pools.claim(one, Holder(9)), Ok(()));
        assert_eq!(
            pools.claim(one, Holder(8)),
            Err(Fault::Held { by: Holder(9) })
        );
        assert_eq!(pools.holder(one), Some(Holder(9)));
        assert!(!pools.release(one, Holder(8)));
    }
    let two = [1, 2].map(|holder| pools.take(&request(holder, b""), None).unwrap());
    assert_eq!(pools.take(&request(3, b""), None), Err(Fault::Full));
    assert!(two.iter().all(|one| *one != fixed && *one != excluded));
    for one in [fixed, excluded, outside] {
        assert!(pools.release(one, Holder(9)));
    }
    assert_eq!(pools.take(&request(3, b""), None), Ok(fixed));
    assert_eq!(
        pools.take(&request(4, b""), None),
        Err(Fault::Full),
        "excluded"
    );
    assert_eq!(pools.outside().duplicates, 3);
}

#[test]
fn a_pool_of_2_to_the_32_prefixes_needs_no_memory_for_those_never_leased() {
    let mut pools = pools(spec(&["2001:db8::/32"], 64, &["2001:db8::/33"], true));
    let one = pools.take(&request(1, b"a"), None).unwrap();
    assert_eq!(one, prefix("2001:db8:8000::/64"));
    assert_eq!(pools.views().next().unwrap().size, 1 << 32);
}

#[test]
fn single_addresses_and_a_whole_range_are_prefixes_too() {
    let mut addresses = pools(spec(&["2001:db8::10/127"], 128, &[], false));
    let one = addresses.take(&request(1, b""), None).unwrap();
    assert_eq!(one, prefix("2001:db8::10/128"));
    let mut whole = pools(spec(&["2001:db8::/48"], 48, &[], false));
    assert_eq!(
        whole.take(&request(1, b""), None),
        Ok(prefix("2001:db8::/48"))
    );
    assert_eq!(whole.take(&request(2, b""), None), Err(Fault::Full));
}

#[test]
fn a_reload_keeps_holders_and_users() {
    let mut pools = pools(spec(&["2001:db8::/60"], 64, &[], true));
    let held = pools.take(&request(1, b"alice"), None).unwrap();
    let left = pools.take(&request(2, b"bob"), None).unwrap();
    pools.release(left, Holder(2));
    pools
        .reload(vec![spec(&["2001:db8::/56"], 64, &[], true)])
        .unwrap();
    assert_eq!(pools.holder(held), Some(Holder(1)));
    assert_ne!(pools.take(&request(3, b"carol"), None), Ok(left));
    assert_eq!(pools.take(&request(4, b"bob"), None), Ok(left));
    pools.reload(vec![]).unwrap();
    assert_eq!(
        (pools.holder(held), pools.outside().held),
        (Some(Holder(1)), 3)
    );
    pools
        .reload(vec![spec(&["2001:db8::/60"], 64, &[], true)])
        .unwrap();
    assert_eq!(pools.outside().held, 0);
    let view = pools.views().next().unwrap();
    assert_eq!(view.used, 3);
    assert!(pools.release(held, Holder(1)));
}

#[test]
fn faults_name_the_key_and_what_would_be_right() {
    let fault = |spec: PrefixSpec| {
        let faults = PrefixPools::new(1).reload(vec![spec]).unwrap_err();
        (faults[0].key, faults[0].message.clone())
    };
    for (ranges, length, excluded, key, part) in [
        (&[][..], 56, &[][..], "ranges", "no network"),
        (&["10.0.0.0/8"], 56, &[], "ranges", "no IPv6"),
        (
            &["2001:db8::/60"],
            56,
            &[],
            "ranges",
            "no prefixes of length 56",
        ),
        (&["2001:db8::/16"], 56, &[], "ranges", ""),
        (
            &["2001:db8::/40", "2001:db8::/48"],
            56,
            &[],
            "ranges",
            "overlaps",
        ),
        (
            &["2001:db8::/40"],
            56,
            &["2001:db8::/32"],
            "excluded",
            "covers all",
        ),
    ] {
        if part.is_empty() {
            continue;
        }
        let (at, message) = fault(spec(ranges, length, excluded, true));
        assert_eq!(at, key);
        assert!(message.contains(part), "{message}");
    }
}

proptest! {
    /// Random leases, claims, releases and reloads: a prefix has one holder, and no prefix is lost.
    #[test]
    fn no_prefix_twice_and_none_lost(
        steps in proptest::collection::vec((0_u8..6, 0_u64..12, 0_u8..16), 1..200),
        sticky: bool,
    ) {
        let of = |length: u8| spec(
            &[["2001:db8::/60", "2001:db8::/61"][usize::from(length)]], 64, &["2001:db8:0:3::/64"], sticky,
        );
        let mut pools = pools(of(0));
        let mut model: Map<Prefix, u64> = Map::new();
        for (step, holder, number) in steps {
            let number = format!("2001:db8:0:{number:x}::/64");
            match step {
                0 | 1 => {
                    let user = [holder as u8];
                    let due = pools.look(&request(holder, &user), None);
                    let taken = pools.take(&request(holder, &user), None).ok();
                    prop_assert_eq!(taken, due);
                    if let Some(taken) = taken {
                        prop_assert!(model.insert(taken, holder).is_none());
                        prop_assert!(taken != prefix("2001:db8:0:3::/64"));
                    }
                }
                2 => {
                    let one = prefix(&number);
                    let claimed = pools.claim(one, Holder(holder)).is_ok();
                    prop_assert_eq!(claimed, !model.contains_key(&one));
                    if claimed {
                        model.insert(one, holder);
                    }
                }
                3 | 4 => {
                    let Some((&one, &by)) = model.iter().next() else { continue };
                    prop_assert!(pools.release(one, Holder(by)));
                    prop_assert!(!pools.release(one, Holder(by)));
                    model.remove(&one);
                }
                _ => pools.reload(vec![of((holder % 2) as u8)]).unwrap(),
            }
            for (one, by) in &model {
                prop_assert_eq!(pools.holder(*one), Some(Holder(*by)));
            }
            let used: u32 = pools.views().map(|view| view.used).sum();
            prop_assert_eq!(used as usize + pools.outside().held, model.len());
        }
        for (one, by) in model {
            prop_assert!(pools.release(one, Holder(by)));
        }
        pools.reload(vec![of(0)]).unwrap();
        let mut all = 0;
        while pools.take(&request(99, b""), None).is_ok() {
            all += 1;
        }
        prop_assert_eq!(all, 15, "16 prefixes, one excluded");
    }
}

#[test]
fn prefix_pools_that_were_prepared_elsewhere_take_over_users_in_slices() {
    let before = spec(&["2001:db8::/60"], 64, &[], true);
    let after = spec(&["2001:db8::/59"], 64, &[], true);
    let made = || {
        let mut pools = pools(before.clone());
        let held = pools.take(&request(1, b"holds"), None).unwrap();
        let users = [b"one", b"two", b"six"].map(|user| {
            let prefix = pools.take(&request(2, user), None).unwrap();
            assert!(pools.release(prefix, Holder(2)));
            prefix
        });
        (pools, held, users)
    };
    let new = || NewPrefixPools::new(vec![after.clone()], |_| false).unwrap();
    let (mut sliced, held, users) = made();
    sliced.replace(new());
    assert_eq!(
        sliced.holder(held),
        Some(Holder(1)),
        "held ones move at once"
    );
    let mut slices = 0;
    while sliced.work(1) {
        slices += 1;
    }
    assert_eq!(slices, 3);
    assert!(sliced.take_gone().is_some() && sliced.take_gone().is_none());
    let view = sliced.views().next().unwrap();
    assert_eq!(
        (view.size, view.used, view.remembered, view.taken),
        (32, 1, 3, 4)
    );
    // In the middle of it, a user is offered and gets its own, and what is leased meanwhile stays leased.
    let (mut early, _, _) = made();
    early.replace(new());
    assert_eq!(early.look(&request(5, b"two"), None), Some(users[1]));
    assert_eq!(early.take(&request(5, b"two"), None), Ok(users[1]));
    let other = early.take(&request(6, b"new"), None).unwrap();
    while early.work(2) {}
    let holders = [users[1], other].map(|one| early.holder(one));
    assert_eq!(holders, [Some(Holder(5)), Some(Holder(6))]);
    // A maker that believed a pool to be there: it is made now.
    let (mut late, held, _) = made();
    late.replace(NewPrefixPools::new(vec![after.clone()], |_| true).unwrap());
    assert_eq!(late.holder(held), Some(Holder(1)));
}
