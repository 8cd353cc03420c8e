//! Seeded simulations of CoA-Requests and Disconnect-Requests: a client that repeats its requests, a network that loses,
//! repeats and delays them, an attacker that replays what it has seen, and sessions that end meanwhile.

use std::collections::{BTreeMap, HashMap};

use aaa::dynauth::{Cause, Dynauth, Order};
use sim::Rng;
use wire::radius::{Packet, attribute as a, code};

use crate::dynauth::{WALL_S, dynauth, handle, request};

/// A request of the client: which session it is about, and which value it sets; `None` ends the session.
#[derive(Clone, Debug)]
struct Sent {
    bytes: Vec<u8>,
    user: u8,
    sets: Option<u32>,
}

/// The sessions, as their owner keeps them.
#[derive(Default)]
struct Owner {
    /// The Session-Timeout of each live session.
    sessions: BTreeMap<u8, u32>,
    /// How often each request was carried out, by its authenticator.
    done: HashMap<Vec<u8>, u32>,
}

impl Owner {
    /// Answers all questions, or some of them, so that repetitions arrive in between.
    fn work(
        &mut self,
        dynauth: &mut Dynauth,
        rng: &mut Rng,
        waiting: &mut Vec<aaa::dynauth::Request>,
    ) {
        while let Some(asked) = dynauth.poll_event() {
            waiting.push(asked);
        }
        while !waiting.is_empty() && rng.chance(0.8) {
            let asked = waiting.remove(0);
            let user = asked.selection.user.as_deref().map_or(0, |user| user[0]);
            let answer = match (self.sessions.get_mut(&user), &asked.order) {
                (None, _) => Err(Cause::NotFound),
                (Some(_), Order::Disconnect { .. }) => {
                    self.sessions.remove(&user);
                    Ok(())
                }
                (Some(session), Order::Change(change)) => {
                    let time = change.session_timeout.expect("the client sets no other");
                    *session = (time.as_millis() / 1_000) as u32;
                    Ok(())
                }
            };
            if answer.is_ok() {
                let key = format!("{user} {:?}", asked.order).into_bytes();
                *self.done.entry(key).or_default() += 1;
            }
            dynauth.answer(asked.ticket, answer);
        }
    }
}

/// The replies that are ready, by identifier and request authenticator.
fn replies(dynauth: &mut Dynauth) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let mut out = Vec::new();
        match dynauth.poll_transmit(&mut out) {
            Some(_) => all.push(out),
            None => return all,
        }
    }
}

fn compose(rng: &mut Rng, id: u8, number: u32, at_s: u64) -> Sent {
    let user = b'a' + rng.below(6) as u8;
    let time = ((WALL_S + at_s) as u32).to_be_bytes();
    let value = number.to_be_bytes();
    let mut attributes: Vec<(u8, &[u8])> = vec![
        (a::USER_NAME, core::slice::from_ref(&user)),
        (a::EVENT_TIMESTAMP, &time),
        (a::PROXY_STATE, &value),
    ];
    let ends = rng.chance(0.1);
    if !ends {
        attributes.push((a::SESSION_TIMEOUT, &value));
    }
    let code = if ends {
        code::DISCONNECT_REQUEST
    } else {
        code::COA_REQUEST
    };
    Sent {
        bytes: request(code, id, &attributes),
        user,
        sets: (!ends).then_some(number),
    }
}

/// No request is carried out twice, every reply to one request is the same, and a replay of an old request never undoes a
/// later one.
#[test]
fn requests_take_effect_once_whatever_the_network_and_an_attacker_repeat() {
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let (mut dynauth, mut owner) = (dynauth(), Owner::default());
        owner.sessions.extend((b'a'..b'g').map(|user| (user, 0)));
        let (mut waiting, mut sent) = (Vec::new(), Vec::<Sent>::new());
        let mut first_reply: HashMap<u8, (Vec<u8>, Vec<u8>)> = HashMap::new();
        for step in 0..120_u32 {
            let at_s = u64::from(step) / 2;
            if rng.chance(0.5) {
                let one = compose(&mut rng, sent.len() as u8, step + 1, at_s);
                sent.push(one);
            }
            // What arrives: the newest request, a repetition, or a replay of any earlier one.
            for _ in 0..rng.below(4) {
                let Some(last) = sent.len().checked_sub(1) else {
                    break;
                };
                let at = match rng.chance(0.5) {
                    true => last,
                    false => rng.below(last as u64 + 1) as usize,
                };
                let _ = handle(&mut dynauth, &sent[at].bytes, at_s);
            }
            owner.work(&mut dynauth, &mut rng, &mut waiting);
            for reply in replies(&mut dynauth) {
                let id = Packet::parse(&reply).unwrap().identifier();
                let request = &sent[usize::from(id)].bytes;
                let known = first_reply
                    .entry(id)
                    .or_insert_with(|| (request.clone(), reply.clone()));
                assert_eq!(known, &(request.clone(), reply), "seed {seed}, step {step}");
            }
        }
        for (order, times) in &owner.done {
            let order = String::from_utf8_lossy(order);
            let ends = order.contains("Disconnect");
            assert!(*times == 1 || ends, "seed {seed}: {order} {times} times");
        }
        // A session holds a value that was sent for it.
        for (user, value) in &owner.sessions {
            let mut of_user = sent.iter().filter(|one| one.user == *user);
            let is_known = of_user.any(|one| one.sets == Some(*value));
            assert!(*value == 0 || is_known, "seed {seed}: {value}");
        }
        let counters = dynauth.counters();
        assert!(counters.repeated + counters.stale + counters.in_progress > 0);
    }
}
