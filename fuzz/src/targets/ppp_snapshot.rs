//! The snapshot of a PPP link, and a link that is read from arbitrary bytes.
//!
//! An input is a snapshot, then steps: an octet that chooses the step, one octet of length, and that many octets.

use base::snapshot::{Reader, Timeline, Writer};
use base::{Duration, Instant, Redacted};
use ppp::{Challenge, Config, Context, Credentials, Grant, Ipv4Offer, Ipv6Offer, Link, Outbox};

use super::ppp_link::Counting;

/// As that of the tests that wrote the corpus.
const TIMELINE: Timeline = Timeline::new(17_280_000_000_000_000);

/// Takes an input as described above.
///
/// # Panics
/// If a link that was read is not written again as it was, or has a timer in the past.
pub fn target(data: &[u8]) {
    let credentials = Credentials {
        name: b"alice"[..].into(),
        secret: Redacted::new(b"sesame"[..].into()),
    };
    let mut reader = Reader::new(data, TIMELINE);
    let Ok(mut link) = Link::restore(&mut reader, Some(credentials)) else {
        return;
    };
    let mut rest = reader.rest();
    let read = &data[..data.len() - rest.len()];
    let mut writer = Writer::new(Vec::new(), TIMELINE);
    link.snapshot(&mut writer);
    assert_eq!(writer.into_octets(), read);

    let (config, mut random, mut out) = (Config::default(), Counting(1), Outbox::new());
    let mut now = Instant::ZERO + Duration::from_secs(1);
    while let [how, length, after @ ..] = rest {
        let (octets, after) = after.split_at(usize::from(*length).min(after.len()));
        rest = after;
        if how & 8 != 0 && link.timeout() != Instant::FAR_FUTURE {
            now = now.max(link.timeout());
        }
        let mut ctx = Context {
            now,
            config: &config,
            random: &mut random,
            out: &mut out,
        };
        step(&mut link, *how, octets, &mut ctx);
        link.handle_timeout(&mut ctx);
        assert!(link.timeout() > now, "what was due is done");
        out.clear();
    }
}

fn step(link: &mut Link, how: u8, octets: &[u8], ctx: &mut Context<'_>) {
    match how & 7 {
        0 => link.close(ctx),
        1 => {
            let grant = Grant {
                ipv4: Some(Ipv4Offer::ASK),
                ipv6: Some(Ipv6Offer::free(1)),
            };
            link.accept(&grant, octets, ctx);
        }
        2 => _ = link.refuse(octets, ctx),
        3 => {
            let challenge = Challenge {
                request: octets,
                state: octets,
                interval: None,
            };
            link.challenge(challenge, ctx);
        }
        4 => link.resume(ctx),
        5 => link.probe(ctx),
        // It may ignore a frame.
        _ => _ = link.handle(octets, ctx),
    }
}
