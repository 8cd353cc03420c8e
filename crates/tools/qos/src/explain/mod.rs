//! `headend qos explain`: the keys of a frame, the rule and the class that it gets, from our engine and from the policy
//! as an eBPF program in the kernel.

mod frames;
mod kernel;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use qos::classify::Match;
use qos::policy::Policy;
use qos::tree::{Classifier, Spec};
use serde_json::{Value, json};
use wire::flow::{Dscp, Flow, Keys};

use super::check::Examined;
use frames::Frame;
use kernel::{Kernel, Verdict};

/// Show the keys, the rule and the class of a frame, from our engine and from an eBPF program in the kernel.
#[derive(Debug, clap::Args)]
pub(super) struct QosExplainArgs {
    /// The policy file
    policy: PathBuf,
    /// A frame in hexadecimal; or a capture, or FILE:N for its n-th packet
    frame: String,
    /// The frame comes from the provider; otherwise it goes there
    #[arg(long)]
    down: bool,
    /// The frame in hexadecimal begins with its IP header
    #[arg(long)]
    ip: bool,
    /// The firewall mark of the frame
    #[arg(long, value_name = "MARK", default_value_t = 0)]
    mark: u32,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The rules of one direction, and the class of packets that no rule takes.
struct Rules<'p> {
    policy: &'p Policy,
    rules: Vec<(Match, u32)>,
    texts: Vec<String>,
    default: Option<u16>,
}

/// What our engine found in a frame.
struct Ours {
    keys: Keys,
    /// The first rule that matches.
    rule: Option<usize>,
    class: u16,
}

/// Explains each frame. Exit status 0: both engines agree, or only ours could be asked; 1: they differ.
pub(super) fn run(args: &QosExplainArgs) -> Result<ExitCode> {
    let examined = Examined::read(&args.policy)?;
    for line in examined.faults() {
        eprintln!("{line}");
    }
    let Some(policy) = examined.policy() else {
        return Ok(ExitCode::from(2));
    };
    let rules = Rules::new(&policy, args.down)?;
    let frames = frames::read(&args.frame, args.ip)?;
    let classifier = Classifier::Rules(rules.rules.clone());
    let kernel = Kernel::load(&classifier, &frames)?;
    let mut differ = 0;
    let mut rows = Vec::new();
    let mut out = std::io::stdout().lock();
    for frame in &frames {
        let ours = rules.ours(frame, args.mark);
        let verdict = kernel.ask(frame, args.mark);
        differ += usize::from(rules.differs(&ours, &verdict));
        if args.json {
            rows.push(rules.object(frame, &ours, &verdict));
        } else {
            rules.print(&mut out, frame, &ours, &verdict)?;
        }
    }
    if args.json {
        let document = json!({
            "schema": "qos.explain/1",
            "direction": if args.down { "down" } else { "up" },
            "instructions": kernel.instructions,
            "differ": differ,
            "frames": rows,
        });
        writeln!(out, "{document:#}")?;
    } else if frames.len() > 1 {
        writeln!(
            out,
            "{} frames, {differ} with other classes in the kernel",
            frames.len()
        )?;
    }
    Ok(match differ {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(1),
    })
}

impl<'p> Rules<'p> {
    fn new(policy: &'p Policy, is_down: bool) -> Result<Self> {
        let spec = if is_down {
            policy.down_spec()
        } else {
            policy.up_spec()
        };
        let Spec::Htb(htb) = spec else {
            let (word, key) = if is_down {
                ("downloads", "link.down")
            } else {
                ("uploads", "link.up")
            };
            bail!("the policy does not shape {word}, so it has no classes; give {key} a rate");
        };
        let classifier = htb.classifier.unwrap_or(Classifier::Rules(Vec::new()));
        let texts = classifier.rules(1).into_iter().map(|rule| rule.what);
        let texts = texts.collect();
        let Classifier::Rules(rules) = classifier else {
            bail!("the policy's classifier is no list of rules");
        };
        Ok(Self {
            policy,
            rules,
            texts,
            default: htb.default,
        })
    }

    fn ours(&self, frame: &Frame, mark: u32) -> Ours {
        let mut keys = match frame.is_ip {
            true => Keys::read(&frame.octets),
            false => Keys::read_frame(&frame.octets),
        };
        keys.mark = mark;
        let rule = self.rules.iter().position(|(rule, _)| rule.matches(&keys));
        let class = rule.map(|rule| self.rules[rule].1 as u16);
        Ours {
            keys,
            rule,
            class: class.or(self.default).unwrap_or(0),
        }
    }

    /// The class that a program's value stands for: 0 is no rule.
    fn class_of(&self, value: u32) -> u16 {
        match value {
            0 => self.default.unwrap_or(0),
            value => value as u16,
        }
    }

    fn differs(&self, ours: &Ours, verdict: &Verdict) -> bool {
        matches!(verdict, Verdict::Value(value) if self.class_of(*value) != ours.class)
    }

    fn name(&self, class: u16) -> &str {
        self.policy.class_name(class).unwrap_or("unclassified")
    }

    fn reason(&self, ours: &Ours) -> String {
        match ours.rule {
            Some(rule) => format!(
                "rule {} of {}: {}",
                rule + 1,
                self.rules.len(),
                self.texts[rule]
            ),
            None => format!("none of {} rules matches", self.rules.len()),
        }
    }

    fn print(
        &self,
        out: &mut impl Write,
        frame: &Frame,
        ours: &Ours,
        verdict: &Verdict,
    ) -> Result<()> {
        let keys = &ours.keys;
        writeln!(out, "packet {}, {} bytes", frame.number, frame.octets.len())?;
        writeln!(out, "  outer   {}", text_of(&keys.outer))?;
        let tunnel = match keys.is_tunnel() {
            true => text_of(&keys.inner),
            false => "none: the outer header is the innermost".to_owned(),
        };
        writeln!(out, "  tunnel  {tunnel}")?;
        let dscp = Dscp::of(keys.traffic_class);
        writeln!(
            out,
            "  other   dscp {dscp}, vlan {}, mark {:#x}",
            keys.vlan, keys.mark
        )?;
        let class = |class| format!("class 1:{class:x} ({})", self.name(class));
        writeln!(
            out,
            "  ours    {}, {}",
            class(ours.class),
            self.reason(ours)
        )?;
        let kernel = match verdict {
            Verdict::Value(value) if self.differs(ours, verdict) => {
                format!("{}: NOT OURS", class(self.class_of(*value)))
            }
            Verdict::Value(value) => class(self.class_of(*value)),
            Verdict::NoAnswer => {
                "no answer: the program cannot read this packet to its end".to_owned()
            }
            Verdict::NotAsked(why) => format!("not asked: {why}"),
        };
        Ok(writeln!(out, "  kernel  {kernel}")?)
    }

    fn object(&self, frame: &Frame, ours: &Ours, verdict: &Verdict) -> Value {
        let keys = &ours.keys;
        let class =
            |class: u16| json!({ "class": format!("1:{class:x}"), "name": self.name(class) });
        let (kernel, reason) = match verdict {
            Verdict::Value(value) => (class(self.class_of(*value)), None),
            Verdict::NoAnswer => (Value::Null, Some("no answer".to_owned())),
            Verdict::NotAsked(why) => (Value::Null, Some(why.clone())),
        };
        json!({
            "packet": frame.number,
            "bytes": frame.octets.len(),
            "outer": flow_object(&keys.outer),
            "tunnel": keys.is_tunnel().then(|| flow_object(&keys.inner)),
            "dscp": Dscp::of(keys.traffic_class).value(),
            "vlan": keys.vlan,
            "mark": keys.mark,
            "rule": ours.rule.map(|rule| rule + 1),
            "condition": ours.rule.map(|rule| &self.texts[rule]),
            "ours": class(ours.class),
            "kernel": kernel,
            "kernel_reason": reason,
        })
    }
}

fn address(octets: [u8; 16]) -> String {
    let address = core::net::Ipv6Addr::from(octets);
    address.to_canonical().to_string()
}

fn text_of(flow: &Flow) -> String {
    if !flow.exists() {
        return "no IP header".to_owned();
    }
    format!(
        "{} > {}, proto {}, ports {} > {}",
        address(flow.source),
        address(flow.destination),
        flow.protocol,
        flow.source_port,
        flow.destination_port
    )
}

fn flow_object(flow: &Flow) -> Value {
    json!({
        "src": address(flow.source),
        "dst": address(flow.destination),
        "proto": flow.protocol,
        "proto_src": flow.source_port,
        "proto_dst": flow.destination_port,
    })
}
