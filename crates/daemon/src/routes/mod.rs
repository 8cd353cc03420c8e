//! The BGP speaker as part of the daemon: its connections, the networks it originates for the edge,
//! and the routes it installs in the kernel. The protocol is in the `bgp` crate. `announce` decides
//! what to originate, `install` writes to the kernel; start with [`BgpService::turn`].

mod announce;
mod install;

use std::io;
use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, Result};
use base::{Duration, Instant};
use bgp::rib::LocalRoute;
use bgp::{Event, Speaker, SpeakerConfig};
use peering::{Buffers, Counts, Peering};
use reactor::netlink::Notice;
use reactor::{HandlerId, Reactor, Ready, Token};
use wire::bgp::Prefix;

use self::announce::{Announced, Step};
use self::install::Installed;
pub(super) use self::install::InstalledCounts;
use super::source::Source;
use crate::config::{Announce, Bgp};
use peering::show::Aside;

/// Work on routes between two looks at the clock: less than a millisecond.
const WORK: usize = 1_024;

/// The places of withdrawn prefixes that are reclaimed in a turn that has read from peers: one of so many that wait, and
/// at least the minimum. Turns without input reclaim [`WORK`] places.
const RECLAIMED_SHARE: usize = 256;
const RECLAIMED_MIN: usize = 64;

/// Changes for the kernel's table that are collected between two looks at the clock.
const CHANGES: usize = 256;

/// The handlers that the loop's time on routes is booked to, one for each kind of work.
pub(super) struct RouteHandlers {
    read: HandlerId,
    timers: HandlerId,
    work: HandlerId,
    write: HandlerId,
    kernel: HandlerId,
}

impl RouteHandlers {
    fn open(reactor: &mut Reactor) -> Self {
        Self {
            read: reactor.handler("bgp read"),
            timers: reactor.handler("bgp timers"),
            work: reactor.handler("bgp routes"),
            write: reactor.handler("bgp write"),
            kernel: reactor.handler("kernel routes"),
        }
    }
}

/// The BGP speaker of the daemon, with its sockets.
pub(super) struct BgpService {
    pub(super) speaker: Speaker,
    peering: Peering,
    buffers: Buffers,
    announce: Announce,
    announced: Announced,
    pools: Vec<Prefix>,
    installed: Option<Installed>,
    handlers: RouteHandlers,
    /// How long one kind of work may take in a turn.
    span: Duration,
    has_work: bool,
    /// Whether more changed routes may wait for the kernel.
    has_changes: bool,
    was_read: bool,
    /// Whether this turn has read from peers.
    is_reading: bool,
    /// Whether places of withdrawn prefixes can be reclaimed.
    has_places: bool,
    ending: bool,
    /// Whether packets keep being forwarded by our routes after the daemon ends (RFC 4724).
    preserves: bool,
    /// Until when routes of an earlier run stay in any case.
    stale_until: Instant,
}

impl BgpService {
    /// Opens the listeners and starts the peers. `pools` are the networks of the address pools.
    ///
    /// # Errors
    /// The listener that could not be opened.
    pub(super) fn open(
        bgp: &Bgp,
        pools: Vec<Prefix>,
        (seed, span): ([u8; 32], Duration),
        reactor: &mut Reactor,
    ) -> Result<Self> {
        let handlers = RouteHandlers::open(reactor);
        let signatures = bgp.signatures();
        let peering = Peering::open(Source::Bgp.to_bits(), &bgp.listen, signatures, reactor)
            .map_err(|(address, error)| {
                let hint = match error.raw_os_error() {
                    Some(92) => ": this kernel has no TCP signatures; leave secret out",
                    _ => "",
                };
                anyhow::Error::new(error).context(format!("bgp.listen: {address}{hint}"))
            })?;
        let installed = bgp
            .install
            .map(Installed::open)
            .transpose()
            .context("bgp.install")?;
        let now = reactor::clock::now();
        let mut speaker = Speaker::new(bgp.speaker.clone(), seed);
        if installed.is_some() {
            speaker.watch_changes();
        }
        let mut routes = Self {
            speaker,
            peering,
            buffers: Buffers::new(),
            announced: Announced::new(&bgp.announce),
            announce: Announce::default(),
            pools: Vec::new(),
            installed,
            handlers,
            span,
            has_work: true,
            has_changes: false,
            was_read: false,
            is_reading: false,
            has_places: false,
            ending: false,
            preserves: bgp.preserves(),
            stale_until: now + bgp.restart_time(),
        };
        routes.announce(&bgp.announce, pools);
        routes.speaker.start(now);
        Ok(routes)
    }

    /// Replaces the announced networks by those of a new configuration.
    fn announce(&mut self, announce: &Announce, pools: Vec<Prefix>) {
        let pools = if announce.pools { pools } else { Vec::new() };
        let mut steps = Vec::new();
        if !announce.subscribers {
            steps = self.announced.forget_leading();
        }
        steps.extend(self.announced.set_aggregates(&announce.aggregates));
        let before = [&self.announce.networks[..], &self.pools[..]].concat();
        let new = announce.networks.iter().chain(&pools);
        steps.extend(new.filter_map(|&network| self.announced.add(network)));
        steps.extend(
            before
                .into_iter()
                .filter_map(|network| self.announced.remove(network)),
        );
        (self.announce, self.pools) = (announce.clone(), pools);
        for step in steps {
            self.step(step);
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Originate(prefix) => self.speaker.originate(prefix, &LocalRoute::default()),
            Step::Retract(prefix) => {
                self.speaker.retract(prefix);
            }
        }
        self.has_work = true;
    }

    /// Records that a network leads to a subscriber, or no longer does.
    pub(super) fn leads(&mut self, address: IpAddr, length: u8, leads: bool) {
        if let Some(step) = self.announced.leads(Prefix::of(address, length), leads) {
            self.step(step);
        }
    }

    /// Applies another configuration, whose speaker was prepared elsewhere. Sessions whose settings are unchanged stay up.
    pub(super) fn reload(
        &mut self,
        bgp: &Bgp,
        speaker: SpeakerConfig,
        pools: Vec<Prefix>,
        now: Instant,
    ) {
        if let Err(error) = self.peering.set_signatures(bgp.signatures()) {
            tracing::error!(%error, "bgp: cannot set the keys of TCP signatures");
        }
        let reload = self.speaker.reload(speaker, now);
        self.preserves = bgp.preserves();
        self.announce(&bgp.announce, pools);
        self.has_work = true;
        for key in &reload.own {
            let whose = if *key == "cluster_id" {
                "internal"
            } else {
                "all"
            };
            tracing::info!("bgp.{key} changed: {whose} sessions start again");
        }
        tracing::info!(
            added = reload.added,
            removed = reload.removed,
            replaced = reload.replaced,
            kept = reload.kept,
            "bgp peers reloaded"
        );
    }

    /// Starts a turn of the loop: reads the connections whose turn did not come in the last one.
    pub(super) fn begin(&mut self, reactor: &mut Reactor, now: Instant) {
        self.buffers.begin_slice(reactor.slice(self.span));
        let Self {
            speaker,
            peering,
            buffers,
            ..
        } = self;
        reactor.enter(self.handlers.read, 0);
        self.is_reading = peering.read_waiting(speaker, buffers, reactor, now);
        if self.is_reading {
            reactor.lap(self.handlers.read);
        }
    }

    /// Serves one of the speaker's descriptors.
    pub(super) fn ready(&mut self, ready: Ready, reactor: &mut Reactor, now: Instant) {
        let Self {
            speaker,
            peering,
            buffers,
            ..
        } = self;
        peering.ready(ready, speaker, buffers, reactor, now);
        self.was_read = true;
    }

    /// When [`BgpService::turn`] must run again if no descriptor becomes ready.
    pub(super) fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let parting = self.peering.poll_timeout().map(|at| (at, "parting"));
        let due = self.speaker.poll_timeout();
        let look = self.installed.as_ref().and_then(Installed::due);
        let look = look.map(|at| (at, "kernel routes"));
        let sweep = (self.stale_until, "stale kernel routes");
        let sweep = self.has_stale().then_some(sweep);
        [due, parting, look, sweep].into_iter().flatten().min()
    }

    /// Whether there is work to do at once.
    pub(super) fn has_work(&self, now: Instant) -> bool {
        self.has_places || self.has_work_for_peers(now)
    }

    fn has_work_for_peers(&self, now: Instant) -> bool {
        let installed = self.installed.as_ref();
        let kernel = installed.is_some_and(|installed| installed.has_work(self.is_settled(now)));
        self.has_work
            || self.has_changes
            || kernel
            || self.peering.has_work()
            || self.speaker.wants_drained()
    }

    /// Does a turn's work, after its input was read.
    pub(super) fn turn(&mut self, reactor: &mut Reactor, now: Instant) {
        if core::mem::take(&mut self.was_read) {
            self.is_reading = true;
            reactor.lap(self.handlers.read);
        }
        self.speaker.drained(reactor.complete_until());
        let due = self.poll_timeout().filter(|(at, _)| *at <= now);
        if let Some((at, timer)) = due {
            reactor.enter(self.handlers.timers, 0);
            reactor.record_lateness(timer, now.since(at));
            self.speaker.handle_timeout(now);
            self.peering.tend(reactor, now);
            reactor.lap(self.handlers.timers);
        }
        reactor.enter(self.handlers.work, 0);
        let slice = reactor.slice(self.span);
        loop {
            self.has_work = self.speaker.work_apart(WORK, now);
            if !self.has_work || slice.is_over() {
                break;
            }
        }
        reactor.lap(self.handlers.work);
        self.write(reactor, now);
        self.tell(reactor, now);
        self.install(reactor, now);
        self.reclaim(reactor, now);
    }

    /// Reclaims places of withdrawn prefixes, after everything that peers wait for.
    fn reclaim(&mut self, reactor: &mut Reactor, now: Instant) {
        let waiting = self.speaker.reclaimable();
        self.has_places = false;
        if waiting == 0 {
            return;
        }
        let is_busy = self.is_reading || self.has_work || self.peering.has_work();
        let budget = if is_busy {
            (waiting / RECLAIMED_SHARE).max(RECLAIMED_MIN)
        } else {
            WORK
        };
        self.has_places = self.speaker.reclaim(budget, now);
        reactor.lap(self.handlers.work);
    }

    /// Whether the speaker has its peers' routes and has decided on them.
    fn is_settled(&self, now: Instant) -> bool {
        !self.has_work && !self.speaker.summary().deferring && now >= self.stale_until
    }

    /// Whether routes of an earlier run wait only for the time from which they may be removed.
    fn has_stale(&self) -> bool {
        let installed = self.installed.as_ref();
        installed.is_some_and(Installed::has_stale) && !self.speaker.summary().deferring
    }

    /// Takes a notification of the kernel.
    pub(super) fn notice(&mut self, notice: &Notice, now: Instant) {
        if let Some(installed) = &mut self.installed {
            installed.notice(notice, now);
        }
    }

    /// The port of the netlink socket that installs routes, if there is one.
    pub(super) fn netlink_port(&self) -> Option<io::Result<u32>> {
        self.installed.as_ref().map(Installed::port)
    }

    /// Counts of installed routes.
    pub(super) fn installed(&self) -> Option<InstalledCounts> {
        self.installed.as_ref().map(Installed::counts)
    }

    fn write(&mut self, reactor: &mut Reactor, now: Instant) {
        let Self {
            speaker,
            peering,
            buffers,
            ..
        } = self;
        reactor.enter(self.handlers.write, 0);
        let slice = reactor.slice(self.span);
        let writes = peering.write(speaker, buffers, reactor, (now, slice));
        if writes > 0 {
            reactor.lap_many(self.handlers.write, writes);
        }
    }

    /// Carries out the speaker's requests and logs its events.
    fn tell(&mut self, reactor: &mut Reactor, now: Instant) {
        let mut asked = false;
        while let Some(event) = self.speaker.poll_event() {
            match self.peering.act(event, &mut self.speaker, reactor, now) {
                None => asked = true,
                Some(event) => self.log(&event, now),
            }
        }
        // A connection that failed at once is tried again later.
        self.has_work |= asked && self.speaker.poll_timeout().is_some_and(|(at, _)| at <= now);
    }

    fn log(&self, event: &Event, now: Instant) {
        let address = |peer| self.speaker.neighbor(peer, now).map(|view| view.remote);
        let text = |address: Option<IpAddr>| address.map_or("-".into(), |ip| ip.to_string());
        match event {
            Event::Up { peer, .. } => {
                if tracing::enabled!(tracing::Level::INFO) {
                    tracing::info!(peer = text(address(*peer)), "bgp session up");
                }
            }
            Event::Down { remote, reason, .. } => {
                tracing::info!(peer = %remote, %reason, "bgp session down");
            }
            Event::Malformed { remote, .. } => {
                tracing::debug!(peer = %remote, "malformed UPDATE");
            }
            Event::Forgotten { remote, .. } => tracing::debug!(peer = %remote, "forgotten"),
            Event::Connect { .. } | Event::Close { .. } => {}
        }
    }

    fn install(&mut self, reactor: &mut Reactor, now: Instant) {
        let settled = self.is_settled(now);
        let Some(installed) = &mut self.installed else {
            return;
        };
        reactor.enter(self.handlers.kernel, 0);
        let slice = reactor.slice(self.span);
        self.has_changes = true;
        while self.has_changes && !slice.is_over() {
            for _ in 0..CHANGES {
                let Some(change) = self.speaker.poll_change() else {
                    self.has_changes = false;
                    break;
                };
                // The kernel already has routes to our own networks.
                let learned = change.best.filter(|best| best.peer.is_some());
                installed.set(change.prefix, learned.and_then(|best| best.next_hop));
            }
        }
        if installed.work(settled, now) {
            reactor.lap(self.handlers.kernel);
        }
    }

    /// Sends every peer a NOTIFICATION that we shut down.
    pub(super) fn shut_down(&mut self, now: Instant) {
        if !self.ending {
            self.ending = true;
            self.speaker.stop("", now);
            self.has_work = true;
        }
    }

    /// Whether every peer was sent its NOTIFICATION.
    pub(super) fn is_quiet(&self, now: Instant) -> bool {
        self.peering.counts().connections == 0 && !self.has_work_for_peers(now)
    }

    /// Removes our routes from the kernel, unless we advertised to a peer that our forwarding state
    /// survives a restart (graceful restart).
    pub(super) fn finish(&mut self) {
        if let Some(installed) = &mut self.installed
            && !self.preserves
        {
            installed.withdraw_all();
        }
    }

    /// Records that a caller changed the speaker, so that the next turn looks for work.
    pub(super) fn touch(&mut self) {
        self.has_work = true;
    }

    /// A listener that rests because it cannot accept, and why.
    pub(super) fn take_failed(&mut self) -> Option<(Token, io::Error)> {
        self.peering.take_failed()
    }

    /// Counters of the sockets.
    pub(super) fn counts(&self) -> Counts {
        self.peering.counts()
    }

    /// Peers with an established session.
    pub(super) fn established(&self) -> u32 {
        self.speaker.established()
    }

    /// State that `show` prints beside the speaker's own.
    pub(super) fn aside(&self) -> Aside {
        let installed = self.installed.as_ref();
        Aside {
            announced: Some(self.announced.len()),
            installed: installed.map(|installed| (installed.len(), installed.refused())),
        }
    }

    /// The addresses it listens on.
    pub(super) fn listening(&self) -> Vec<SocketAddr> {
        self.peering.listening().collect()
    }
}

/// How long the daemon waits at shutdown for peers to read the NOTIFICATION.
pub(super) fn patience(bgp: Option<&Bgp>) -> Duration {
    bgp.map_or(Duration::ZERO, |bgp| bgp.shutdown_wait)
}
