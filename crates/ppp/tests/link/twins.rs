//! Twins: every link of these tests is written now and then, read back, and driven along with the first one. Whatever a
//! test does, both must send and report the same, and be written with the same bytes.

use base::snapshot::{ReadError, Reader, Timeline, Writer};
use ppp::{Context, Credentials, Link, Outbox};

use crate::harness::{End, Seeded};

/// The clock of a process that started when the timeline was 200 days old.
pub(crate) const CLOCK: Timeline = Timeline::new(17_280_000_000_000_000);
/// That of one that started 2 h earlier, at another fraction of a second.
pub(crate) const OTHER_CLOCK: Timeline = Timeline::new(17_272_799_877_000_000);

/// How often a twin is read anew, in percent of the calls, where there are many: elsewhere it is at each.
pub(crate) const RENEWED: u64 = 10;

pub(crate) fn written(link: &mut Link, clock: Timeline) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), clock);
    link.snapshot(&mut writer);
    writer.into_octets()
}

/// Reads a link that all of `octets` are.
pub(crate) fn read(
    octets: &[u8],
    clock: Timeline,
    credentials: Option<Credentials>,
) -> Result<Option<Link>, ReadError> {
    let mut reader = Reader::new(octets, clock);
    let link = Link::restore(&mut reader, credentials)?;
    Ok(reader.rest().is_empty().then_some(link))
}

/// Reads a link, which must then be written again with the same bytes, also by another process's clock.
pub(crate) fn restored(octets: &[u8], credentials: Option<Credentials>) -> Link {
    let [first, other] = [CLOCK, OTHER_CLOCK].map(|clock| {
        let mut link = read(octets, clock, credentials.clone())
            .unwrap_or_else(|error| panic!("{error}: {octets:?}"))
            .expect("a whole link");
        assert_eq!(written(&mut link, clock), octets);
        link
    });
    assert_eq!(first.view(), other.view());
    first
}

/// A second link that gets whatever the first one gets.
pub(crate) struct Twin {
    link: Link,
    out: Outbox,
    /// What both are written as.
    octets: Vec<u8>,
}

impl Twin {
    /// The twin for the next call: the present one, unless it is to be read anew, or the test has changed the link
    /// behind its back.
    pub(crate) fn of(end: &mut End) -> Option<Self> {
        let renewed = end.chance.percent(end.renewed?);
        let octets = written(&mut end.link, CLOCK);
        Some(match end.twin.take() {
            Some(twin) if !renewed && twin.octets == octets => twin,
            _ => Self {
                link: restored(&octets, end.credentials.clone()),
                out: Outbox::new(),
                octets,
            },
        })
    }

    /// Makes the call that the end's link has got. `random` is as it was before.
    pub(crate) fn follow<T>(
        mut self,
        end: &mut End,
        mut random: Seeded,
        f: impl Fn(&mut Link, &mut Context<'_>) -> T,
        now: base::Instant,
    ) -> Self {
        self.out.clear();
        let mut ctx = Context {
            now,
            config: &end.config,
            random: &mut random,
            out: &mut self.out,
        };
        f(&mut self.link, &mut ctx);
        assert!(self.out.frames().eq(end.out.frames()), "other frames");
        assert_eq!(self.out.events(), end.out.events());
        assert_eq!(random.0, end.random.0, "other random numbers");
        assert_eq!(self.link.view(), end.link.view());
        assert_eq!(self.link.refusal(), end.link.refusal());
        assert_eq!(self.link.echo_rtt_us(), end.link.echo_rtt_us());
        let due = [&self.link, &end.link].map(|link| CLOCK.of(link.timeout()));
        assert_eq!(due[0], due[1], "another timer");
        self.octets = written(&mut end.link, CLOCK);
        assert_eq!(written(&mut self.link, CLOCK), self.octets);
        self
    }
}
