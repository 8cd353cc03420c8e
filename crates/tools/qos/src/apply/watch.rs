//! `headend qos apply --watch`: puts the policy back when an interface comes back or another program changes its queues.
//!
//! Notifications of the kernel start everything; nothing is polled. Repairs of queues that another program keeps changing
//! come at growing intervals. Start with [`watch`].

use std::process::ExitCode;

use anyhow::{Context, Result};
use base::{Duration, Instant};
use qos::policy::Policy;
use reactor::netlink::{QueueMonitor, QueueNotice};
use reactor::{Interest, PollerKind, Reactor, Signal, Signals, StoreKind, clock};
use tc::Verb;

use super::super::check::Examined;
use super::manager::Manager;
use super::session::{Done, Session};
use super::transaction::name;
use super::{ApplyArgs, summary};

const SIGNALS: u64 = 0;
const NOTICES: u64 = 1;

/// Time for another program to finish what it began.
const SETTLE: Duration = Duration::from_millis(200);
/// The pause after a repair, doubled with each until [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// So long without a repair, and the pause is short again.
const CALM: Duration = Duration::from_secs(300);
/// Changes that a line names.
const NAMED_MAX: usize = 3;

/// Why the queues are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// The kernel reported something.
    Notice,
    /// The start, or SIGHUP.
    Policy,
}

struct Watch<'a> {
    session: Session<'a>,
    policy: Policy,
    /// The indices of the interfaces, those of the policy first; empty while one of them is missing.
    in_force: Vec<u32>,
    /// When to look, and why.
    due: Option<(Instant, Reason)>,
    /// Repairs are not made earlier.
    not_before: Instant,
    /// The pause after the next repair.
    pause: Duration,
    manager: Manager,
    /// What was said last about a missing interface.
    missing: Option<String>,
    failure: Option<String>,
}

/// Puts the policy in force, and keeps it in force until SIGTERM or SIGINT, which restore what was there.
pub(super) fn watch(args: &ApplyArgs) -> Result<ExitCode> {
    let signals = Signals::new()?;
    let Some(policy) = read(args)? else {
        return Ok(ExitCode::from(2));
    };
    let session = Session::open(args)?;
    let own = session.kernel.netlink.port().context("a netlink socket")?;
    let mut monitor = QueueMonitor::open(own).context("cannot watch for changes")?;
    let mut reactor = Reactor::new(PollerKind::Epoll, StoreKind::default())?;
    reactor.add(&signals, "signals", SIGNALS, Interest::READ)?;
    reactor.add(&monitor, "netlink", NOTICES, Interest::READ)?;
    let mut watch = Watch {
        session,
        policy,
        in_force: Vec::new(),
        due: None,
        not_before: Instant::ZERO,
        pause: PAUSE,
        manager: Manager::open(clock::now()),
        missing: None,
        failure: None,
    };
    // What is wrong from the start ends the process; later faults are tried again.
    watch.look(Reason::Policy)?;
    watch.manager.ready();
    loop {
        let wake = watch.manager.next().into_iter();
        let wake = wake.chain(watch.due.map(|(due, _)| due)).min();
        let now = reactor.wait(wake).context("the event loop failed")?;
        while let Some(ready) = reactor.next_ready() {
            match ready.user {
                SIGNALS => {
                    while let Some(signal) = signals.next_signal()? {
                        match signal {
                            Signal::Terminate | Signal::Interrupt => return watch.end(),
                            Signal::Hangup => watch.reload(args, now),
                        }
                    }
                }
                _ => watch.notices(&mut monitor, now)?,
            }
        }
        watch.turn(now);
    }
}

/// The policy; `None` if it has faults, which are printed.
fn read(args: &ApplyArgs) -> Result<Option<Policy>> {
    let examined = Examined::read(&args.policy)?;
    for line in examined.faults().iter().chain(&examined.advice()) {
        eprintln!("{line}");
    }
    Ok(examined.policy())
}

impl Watch<'_> {
    /// Reads notices, and decides whether and when to look.
    fn notices(&mut self, monitor: &mut QueueMonitor, now: Instant) -> Result<()> {
        let mut notices = Vec::new();
        while monitor
            .read(&mut notices)
            .context("cannot watch for changes")?
        {}
        let indices = self.indices();
        let has_moved =
            indices != self.in_force[..self.in_force.len().min(self.session.names().len())];
        let is_ours = |notice: &QueueNotice| match notice {
            QueueNotice::Overflow => true,
            QueueNotice::Link(index) | QueueNotice::Queues(index) => self.in_force.contains(index),
        };
        if has_moved {
            // A new interface has no queues of ours; there is no reason to wait.
            self.due = Some((now, Reason::Notice));
        } else if notices.iter().any(is_ours) && self.due.is_none() {
            let at = (now + SETTLE).max(self.not_before);
            self.due = Some((at, Reason::Notice));
        }
        Ok(())
    }

    /// The indices of the policy's interfaces; empty if one is missing.
    fn indices(&self) -> Vec<u32> {
        let names = self.session.names().into_iter();
        let indices = names.map(|(_, name)| self.session.kernel.netlink.index(name).ok());
        indices.collect::<Option<Vec<u32>>>().unwrap_or_default()
    }

    /// Looks if it is time, and reports to the service manager.
    fn turn(&mut self, now: Instant) {
        if let Some((_, reason)) = self.due.filter(|(due, _)| *due <= now) {
            self.due = None;
            if let Err(error) = self.look(reason) {
                let text = format!("{error:#}");
                if self.failure.as_ref() != Some(&text) {
                    eprintln!("{text}");
                }
                self.manager.status(&text);
                self.failure = Some(text);
                self.not_before = now + self.pause;
                self.due = Some((self.not_before, reason));
                self.pause = (self.pause + self.pause).min(PAUSE_MAX);
            } else {
                self.failure = None;
            }
        }
        self.manager.turn(now);
    }

    /// Puts the policy in force where it is not.
    fn look(&mut self, reason: Reason) -> Result<()> {
        let old = std::mem::take(&mut self.in_force);
        if self.indices().is_empty() {
            self.say_missing(!old.is_empty());
            return Ok(());
        }
        let plan = self.session.plan(&self.policy)?;
        let is_first = reason == Reason::Policy;
        for line in plan.advice.iter().filter(|_| is_first) {
            eprintln!("{line} (advice)");
        }
        let done = self.session.put(&plan)?;
        for line in &done.differences {
            eprintln!("{line}");
        }
        self.in_force = self.indices();
        let names = self.session.names().len();
        let has_moved = self.in_force.get(..names) != old.get(..names);
        let others = done.targets.iter().map(|target| target.index);
        let others: Vec<u32> = others
            .filter(|index| !self.in_force.contains(index))
            .collect();
        self.in_force.extend(others);
        let wan = self.session.names()[0].1;
        let line = summary(wan, &self.policy, &plan, &done);
        if is_first {
            println!("{line}");
        } else if has_moved {
            let count = done.changes.len();
            eprintln!("{}: {count} changes made its queues", self.moved(&old));
        } else if !done.changes.is_empty() {
            self.repaired(&done);
        }
        self.missing = None;
        self.manager.status(&line);
        Ok(())
    }

    /// "ppp0 is interface 7 now".
    fn moved(&self, old: &[u32]) -> String {
        let names = self.session.names().into_iter().enumerate();
        let moved = names.filter(|(place, _)| self.in_force.get(*place) != old.get(*place));
        let moved = moved
            .map(|(place, (_, name))| format!("{name} is interface {} now", self.in_force[place]));
        moved.collect::<Vec<_>>().join(", ")
    }

    fn say_missing(&mut self, was_there: bool) {
        let names = self.session.names().into_iter();
        let missing = names.filter(|(_, name)| self.session.kernel.netlink.index(name).is_err());
        let missing: Vec<&str> = missing.map(|(_, name)| name).collect();
        let what = if was_there {
            "is gone"
        } else {
            "does not exist yet"
        };
        let text = format!("{} {what}; waiting for it", missing.join(" and "));
        if self.missing.as_ref() != Some(&text) {
            eprintln!("{text}");
            self.manager.status(&text);
        }
        self.missing = Some(text);
    }

    /// Says what another program changed, and plans when the next repair may be.
    fn repaired(&mut self, done: &Done) {
        let now = clock::now();
        if now.since(self.not_before) > CALM {
            self.pause = PAUSE;
        }
        let device = |index: u32| {
            let mut targets = done.targets.iter();
            targets
                .find(|target| target.index == index)
                .map_or("?", |target| &target.name)
        };
        let named = done.changes.iter().take(NAMED_MAX).map(|(index, change)| {
            let what = match change.verb {
                Verb::Add => "was missing",
                Verb::Change => "was changed",
                Verb::Delete => "was added",
            };
            format!("{}: {} {what}", device(*index), name(change))
        });
        let mut text = named.collect::<Vec<_>>().join(", ");
        if done.changes.len() > NAMED_MAX {
            text.push_str(&format!(", and {} more", done.changes.len() - NAMED_MAX));
        }
        let seconds = self.pause.as_nanos() / 1_000_000_000;
        eprintln!("{text}; put back; the next repair is in {seconds} s at the earliest");
        self.not_before = now + self.pause;
        self.pause = (self.pause + self.pause).min(PAUSE_MAX);
    }

    /// Reads the policy again. A faulty one changes nothing.
    fn reload(&mut self, args: &ApplyArgs, now: Instant) {
        self.manager.reloading(now);
        match read(args).and_then(|policy| {
            self.session.look_again()?;
            Ok(policy)
        }) {
            Ok(Some(policy)) => {
                let old = std::mem::replace(&mut self.policy, policy);
                if let Err(error) = self.look(Reason::Policy) {
                    eprintln!("{error:#}; the policy from before stays in force");
                    self.policy = old;
                    self.due = Some((now, Reason::Notice));
                }
            }
            Ok(None) => eprintln!("the policy from before stays in force"),
            Err(error) => eprintln!("{error:#}; the policy from before stays in force"),
        }
        self.manager.ready();
    }

    /// Restores what was there.
    fn end(mut self) -> Result<ExitCode> {
        self.manager.stopping();
        let missing = self.session.restore()?;
        for line in &missing {
            eprintln!("{line}");
        }
        Ok(ExitCode::from(u8::from(!missing.is_empty())))
    }
}
