//! What decides the queues of subscribers: templates, shared links, and which source has the last word.
//!
//! For each part (rate down, rate up, template, link) the first source decides that says something: an operator's
//! command, the subscriber's profile (users file, RADIUS), its pool, its line, the defaults. A template may have rates;
//! they count as those of the source that names it, unless that source gives a rate itself.
//!
//! Start reading at [`Queues::resolve`].

use core::fmt;
use core::net::IpAddr;
use std::sync::Arc;

use aaa::Prefix;
use aaa::queue::{BitsPerSecond, Queue, Way};
use hashbrown::HashMap;
use hqos::spec::{Fault, NodeId, Plan, Rates, Shape, Template, TemplateId};

use crate::access::Peer;

/// Where a part of a subscriber's queues comes from, the strongest source first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// An operator's command.
    Command,
    /// The users file.
    User,
    /// A RADIUS server.
    Radius,
    /// The subscriber's pool.
    Pool,
    /// The line that its session arrives on.
    Line,
    /// The configuration's defaults.
    Default,
}

impl Source {
    /// A stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::User => "user",
            Self::Radius => "radius",
            Self::Pool => "pool",
            Self::Line => "line",
            Self::Default => "default",
        }
    }
}

/// The sessions that a line's settings are for: each condition that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Our address that the tunnel arrived at.
    pub local: Option<IpAddr>,
    /// The network of the peer's address.
    pub peer: Option<Prefix>,
    /// The peer's name for itself.
    pub host_name: Option<Box<str>>,
    /// What it says.
    pub queue: Queue,
}

impl Line {
    fn is_of(&self, peer: &Peer<'_>) -> bool {
        let (remote, own) = match peer.addresses {
            Some((remote, own)) => (Some(remote), Some(own)),
            None => (None, None),
        };
        let name = self.host_name.as_deref().map(str::as_bytes);
        self.local.is_none_or(|local| own == Some(local))
            && self
                .peer
                .is_none_or(|network| remote.is_some_and(|address| network.contains(address)))
            && name.is_none_or(|name| name == peer.name)
    }
}

/// What the configuration says by source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Defaults {
    /// For everybody.
    pub all: Queue,
    /// For those with an address of a pool, by its name.
    pub pools: HashMap<Box<str>, Queue>,
    /// For those of a line; the first that matches.
    pub lines: Vec<Line>,
    /// Whether a value that cannot be applied refuses a subscriber. Otherwise the next source decides.
    pub strict: bool,
}

/// The plan of queues, and the settings of all sources that are not a subscriber's own.
#[derive(Clone, Debug)]
pub struct Queues {
    plan: Plan,
    /// Rates down and up of each template.
    rates_bps: Vec<[Option<u64>; 2]>,
    templates: HashMap<Arc<str>, TemplateId>,
    nodes: HashMap<Arc<str>, NodeId>,
    defaults: Defaults,
    /// The template of those for whom no source names one.
    fallback: TemplateId,
}

impl Default for Queues {
    fn default() -> Self {
        let queues = Self::new(Plan::default(), Vec::new(), Defaults::default());
        queues.expect("an empty plan has no fault")
    }
}

/// The queues of one subscriber: what its sources come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// What the queues are to be. Its ids are those of the plan that it was made with.
    pub shape: Shape,
    /// The template's name.
    pub template: Arc<str>,
    /// The link's name.
    pub link: Option<Arc<str>>,
    /// Where the rates come from; `None`: no source says anything, so there is no limit.
    pub rate_sources: [Option<Source>; 2],
    /// Where the template comes from; `None`: no source names one.
    pub template_source: Option<Source>,
    /// Where the link comes from.
    pub link_source: Option<Source>,
}

impl Setting {
    /// The rate of a direction in bits per second, if it has a limit.
    #[must_use]
    pub fn rate_bps(&self, way: Way) -> Option<u64> {
        Some(rate_of(self.shape.rates, way)).filter(|&rate| rate > 0)
    }

    /// What the packets need: nothing, if neither a rate nor a link holds them back.
    #[must_use]
    pub fn needed(&self) -> Option<Shape> {
        let shape = self.shape;
        (shape.rates != Rates::default() || shape.node.is_some()).then_some(shape)
    }
}

/// Why a part of a source cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueFault {
    /// No template has this name.
    NoTemplate(Box<str>, Source),
    /// No link has this name.
    NoLink(Box<str>, Source),
    /// A rate is above that of a link.
    OverLink(Box<OverLink>),
}

/// A rate above that of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverLink {
    /// The direction.
    pub way: Way,
    /// The rate, in bits per second.
    pub rate_bps: u64,
    /// The link.
    pub link: Arc<str>,
    /// The rate of the link.
    pub link_bps: u64,
    /// Subscribers on the link and on those below it, and the sum of their rates in that direction, if that was asked for.
    pub promised: Option<(u32, u64)>,
}

impl fmt::Display for QueueFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTemplate(name, source) => {
                write!(f, "there is no template {name:?} ({})", source.name())
            }
            Self::NoLink(name, source) => {
                write!(f, "there is no link {name:?} ({})", source.name())
            }
            Self::OverLink(over) => over.fmt(f),
        }
    }
}

impl fmt::Display for OverLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (link, way) = (&self.link, self.way);
        let (rate, whole) = (BitsPerSecond(self.rate_bps), BitsPerSecond(self.link_bps));
        write!(f, "link {link} has {whole} {way}")?;
        match self.promised {
            None | Some((0, _)) => {}
            Some((1, sum)) => write!(f, ", of which 1 subscriber may use {}", BitsPerSecond(sum))?,
            Some((more, sum)) => {
                let sum = BitsPerSecond(sum);
                write!(f, ", of which {more} subscribers may use {sum}")?;
            }
        }
        write!(f, ": {rate} is more than the whole link")
    }
}

/// The subscribers directly on a link, and their rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkUse {
    pub(crate) subscribers: u32,
    /// Sums of the rates down and up.
    pub(crate) rates_bps: [u64; 2],
}

fn rate_of(rates: Rates, way: Way) -> u64 {
    match way {
        Way::Down => rates.down,
        Way::Up => rates.up,
    }
}

impl Queues {
    /// Queues of this plan. `rates_bps` has the rates down and up of each template, 0 for no limit; missing ones say
    /// nothing. A template `default` is added if there is none.
    ///
    /// # Errors
    /// The plan cannot be used.
    pub fn new(
        mut plan: Plan,
        mut rates_bps: Vec<[Option<u64>; 2]>,
        defaults: Defaults,
    ) -> Result<Self, Fault> {
        let own = Template::default();
        let fallback = plan.template(&own.name).unwrap_or_else(|| {
            plan.templates.push(own);
            TemplateId((plan.templates.len() - 1) as u16)
        });
        plan.check()?;
        rates_bps.resize(plan.templates.len(), [None; 2]);
        let templates = plan.templates.iter().enumerate();
        let templates = templates.map(|(n, one)| (one.name.as_str().into(), TemplateId(n as u16)));
        let nodes = plan.nodes.iter().enumerate();
        let nodes = nodes.map(|(n, one)| (one.name.as_str().into(), NodeId(n as u32)));
        Ok(Self {
            templates: templates.collect(),
            nodes: nodes.collect(),
            plan,
            rates_bps,
            defaults,
            fallback,
        })
    }

    /// The templates and links.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What the configuration says by source.
    #[must_use]
    pub fn defaults(&self) -> &Defaults {
        &self.defaults
    }

    /// The rates of a template, down and up in bits per second, 0 for no limit.
    #[must_use]
    pub fn rates_of(&self, template: &str) -> [Option<u64>; 2] {
        let id = self.templates.get(template);
        id.map_or([None; 2], |id| self.rates_bps[usize::from(id.0)])
    }

    /// Whether there is a template of this name.
    #[must_use]
    pub fn has_template(&self, name: &str) -> bool {
        self.templates.contains_key(name)
    }

    /// The settings of the line that sessions of this peer arrive on.
    pub(crate) fn line(&self, peer: &Peer<'_>) -> Option<&Queue> {
        let mut lines = self.defaults.lines.iter();
        lines.find(|line| line.is_of(peer)).map(|line| &line.queue)
    }

    /// What `sources`, the strongest first, come to, and what of them cannot be applied. `None` if no source says
    /// anything that can be applied.
    #[must_use]
    pub fn resolve(&self, sources: &[(Source, &Queue)]) -> (Option<Setting>, Vec<QueueFault>) {
        let mut faults = Vec::new();
        let mut setting = Setting {
            shape: Shape {
                rates: Rates::default(),
                template: self.fallback,
                node: None,
            },
            template: Arc::from(""),
            link: None,
            rate_sources: [None; 2],
            template_source: None,
            link_source: None,
        };
        for &(source, queue) in sources {
            self.take_templates(queue, source, &mut setting, &mut faults);
            self.take_link(queue, source, &mut setting, &mut faults);
        }
        let is_silent = setting.rate_sources == [None; 2]
            && setting.template_source.is_none()
            && setting.link_source.is_none();
        if is_silent {
            return (None, faults);
        }
        let template = usize::from(setting.shape.template.0);
        let name = self.plan.templates.get(template).map(|one| &*one.name);
        let known = name.and_then(|name| self.templates.get_key_value(name));
        if let Some((name, _)) = known {
            setting.template = Arc::clone(name);
        }
        faults.extend(
            Way::ALL
                .into_iter()
                .filter_map(|way| self.over(&setting, way)),
        );
        (Some(setting), faults)
    }

    /// Takes the template of a source, and its rates, unless a stronger source has decided.
    fn take_templates(
        &self,
        queue: &Queue,
        source: Source,
        setting: &mut Setting,
        faults: &mut Vec<QueueFault>,
    ) {
        let ids = queue.templates.each_ref().map(|name| {
            let name = name.as_deref()?;
            let found = self.templates.get(name).copied();
            if found.is_none() {
                let fault = QueueFault::NoTemplate(name.into(), source);
                if !faults.contains(&fault) {
                    faults.push(fault);
                }
            }
            found
        });
        if let (Some(id), None) = (ids[0].or(ids[1]), setting.template_source) {
            setting.shape.template = id;
            setting.template_source = Some(source);
        }
        for way in Way::ALL {
            let at = way as usize;
            let of_template = ids[at].and_then(|id| self.rates_bps[usize::from(id.0)][at]);
            let rate = queue.rates_bps[at].or(of_template);
            if let (Some(rate), None) = (rate, setting.rate_sources[at]) {
                match way {
                    Way::Down => setting.shape.rates.down = rate,
                    Way::Up => setting.shape.rates.up = rate,
                }
                setting.rate_sources[at] = Some(source);
            }
        }
    }

    fn take_link(
        &self,
        queue: &Queue,
        source: Source,
        setting: &mut Setting,
        faults: &mut Vec<QueueFault>,
    ) {
        let Some(name) = &queue.link else { return };
        match self.nodes.get_key_value(&**name) {
            Some((name, &id)) if setting.link_source.is_none() => {
                setting.shape.node = Some(id);
                setting.link = Some(Arc::clone(name));
                setting.link_source = Some(source);
            }
            Some(_) => {}
            None => faults.push(QueueFault::NoLink(name.clone(), source)),
        }
    }

    /// Whether the rate of a direction is above that of a link.
    fn over(&self, setting: &Setting, way: Way) -> Option<QueueFault> {
        let rate_bps = rate_of(setting.shape.rates, way);
        let mut above = self.plan.above(setting.shape.node?);
        let (_, node) = above.find(|(_, node)| {
            let most = rate_of(node.rates, way);
            most > 0 && rate_bps > most
        })?;
        let (link, _) = self.nodes.get_key_value(node.name.as_str())?;
        Some(QueueFault::OverLink(Box::new(OverLink {
            way,
            rate_bps,
            link: Arc::clone(link),
            link_bps: rate_of(node.rates, way),
            promised: None,
        })))
    }

    /// Subscribers on a link and on those below it, and the sum of their rates.
    pub(crate) fn promised(
        &self,
        link: &str,
        way: Way,
        uses: &HashMap<Arc<str>, LinkUse>,
    ) -> (u32, u64) {
        let below = uses.iter().filter(|(name, _)| {
            let node = self.nodes.get(&**name);
            node.is_some_and(|&node| self.plan.above(node).any(|(_, one)| one.name == link))
        });
        below.fold((0, 0), |(subscribers, sum), (_, one)| {
            let rate = one.rates_bps[way as usize];
            (subscribers + one.subscribers, sum + rate)
        })
    }
}

#[cfg(test)]
mod tests;
