//! Queues without classes: their kind is a template or a class's `queue`, and their options are keys of `[shape]`.

use convert::Fate;

use super::objects::Object;
use super::sheet::Import;

/// Kinds of tc, the template that does the same, and the name of the queue in a class.
const KINDS: &[(&str, &str, &str)] = &[
    ("fq_codel", "flows", "flows"),
    ("cake", "home", "fair"),
    ("codel", "codel", "codel"),
    ("sfq", "sfq", "sfq"),
    ("pfifo_fast", "bands", "bands"),
    ("pfifo", "pfifo", "pfifo"),
    ("bfifo", "fifo", "fifo"),
];

/// The template that does what a kind of queue does.
pub(super) fn template(kind: &str) -> Option<&'static str> {
    KINDS
        .iter()
        .find(|(name, ..)| *name == kind)
        .map(|(_, template, _)| *template)
}

/// An option with its value; flags have none.
fn options(object: &Object) -> Vec<(&str, &str)> {
    let flags = ["ecn", "noecn", "headdrop", "redharddrop"];
    let mut found = Vec::new();
    let mut words = object.words.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        match word {
            // `limit 100p`, and the list behind `priomap`, which Linux sets.
            "priomap" => {
                while words
                    .next_if(|word| word.parse::<u8>().is_ok() || word.contains(','))
                    .is_some()
                {}
            }
            word if flags.contains(&word) => {
                // JSON has `ecn true`.
                let value = words.next_if(|word| matches!(*word, "true" | "false"));
                found.push((word, value.unwrap_or("true")));
            }
            word => found.push((word, words.next().unwrap_or_default())),
        }
    }
    found
}

/// What an option of a queue becomes in `[shape]`.
enum Key {
    Is(&'static str, convert::Value),
    Fixed(Fate, &'static str),
}

fn key(kind: &str, option: &str, value: &str) -> Key {
    let small = value.to_ascii_lowercase();
    let packets = small.trim_end_matches('p').parse::<i64>().ok();
    match (option, packets) {
        ("limit", _) if kind == "bfifo" => {
            Key::Is("limit", format!("{}b", small.trim_end_matches('b')).into())
        }
        ("limit", Some(packets)) => Key::Is("limit", packets.into()),
        ("target" | "interval", _) if matches!(kind, "fq_codel" | "codel" | "cake") => {
            let key = if option == "target" {
                "target"
            } else {
                "interval"
            };
            Key::Is(key, small.into())
        }
        ("ecn" | "noecn", _) => Key::Is("ecn", ((option == "ecn") == (value == "true")).into()),
        ("quantum", _) => Key::Is("quantum", small.into()),
        ("memory_limit", _) => Key::Is("memory", small.into()),
        ("perturb", Some(seconds)) => Key::Is("perturb", format!("{seconds}s").into()),
        ("perturb", None) => Key::Is("perturb", small.replace("sec", "s").into()),
        ("flows" | "divisor" | "depth" | "drop_batch" | "bands", _) => {
            Key::Fixed(Fate::Kept, "headend's tables grow with the flows")
        }
        _ => Key::Fixed(Fate::NotSupported, "headend has no such option"),
    }
}

/// Sets `[shape]` from the queue of packets that no section takes. Returns how many options it reported.
pub(super) fn shape(import: &mut Import, object: &Object, name: &str) -> usize {
    let place = &object.place;
    let Some(template) = template(&object.kind) else {
        import.report.lost(
            place,
            name,
            "headend has no such queue; the template is home",
        );
        return 1;
    };
    import.set(("shape", "template"), template, (place, name), "");
    let options = options(object);
    for (option, value) in &options {
        let whole = format!("{name} {option}");
        match key(&object.kind, option, value) {
            Key::Is(key, value) => import.set(("shape", key), value, (place, &whole), ""),
            Key::Fixed(fate, why) => import.report.line(place, &whole, fate, why),
        }
    }
    1 + options.len()
}

/// Sets `queue` and `limit` of the sections `own`. Returns how many options it reported.
pub(super) fn class(import: &mut Import, object: &Object, name: &str, own: &[usize]) -> usize {
    let place = &object.place;
    let known = KINDS.iter().find(|(kind, ..)| *kind == object.kind);
    let (Some((_, _, queue)), false) = (known, own.is_empty()) else {
        let why = if own.is_empty() {
            "its class is no section"
        } else {
            "headend has no such queue; the class has the template's"
        };
        import.report.lost(place, name, why);
        return 1;
    };
    let from = std::slice::from_ref(place);
    for at in own {
        import.policy.tables[*at].set("queue", *queue, from, "");
    }
    import.report.key(place, name, &["class.queue"], "");
    let options = options(object);
    for (option, value) in &options {
        let whole = format!("{name} {option}");
        match key(&object.kind, option, value) {
            Key::Is("limit", limit) => {
                for at in own {
                    import.policy.tables[*at].set("limit", limit.clone(), from, "");
                }
                import.report.key(place, &whole, &["class.limit"], "");
            }
            Key::Is(..) => import.report.lost(
                place,
                &whole,
                "a class has its queue's limit only; [shape] has the rest",
            ),
            Key::Fixed(fate, why) => import.report.line(place, &whole, fate, why),
        }
    }
    1 + options.len()
}

/// The options of cake as tc's JSON and text have them, as keywords.
pub(super) fn cake_words(words: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    let mut words = words.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        let is_flag = matches!(
            word,
            "nat" | "wash" | "ingress" | "split_gso" | "raw" | "autorate-ingress"
        );
        let flag = if is_flag {
            words.next_if(|word| matches!(*word, "true" | "false"))
        } else {
            None
        };
        let text = match (word, flag) {
            ("diffserv" | "flowmode" | "atm", None)
                if words.peek().is_some_and(|next| is_value(next)) =>
            {
                words.next().unwrap_or_default().to_owned()
            }
            ("ack-filter", None) => {
                match words.next_if(|word| matches!(*word, "disabled" | "enabled" | "aggressive")) {
                    Some("disabled") => "no-ack-filter".to_owned(),
                    Some("aggressive") => "ack-filter-aggressive".to_owned(),
                    _ => word.to_owned(),
                }
            }
            ("split_gso", Some("false")) => "no-split-gso".to_owned(),
            ("split_gso", _) => "split-gso".to_owned(),
            ("nat" | "wash", Some("false")) => format!("no{word}"),
            ("ingress", Some("false")) => "egress".to_owned(),
            (_, Some("false")) => continue,
            ("bandwidth", _) if words.peek() == Some(&"unlimited") => {
                words.next();
                "unlimited".to_owned()
            }
            (word, _) => word.to_ascii_lowercase(),
        };
        out.push(text);
    }
    // A packet's length is either given or the kernel's.
    if out.iter().any(|word| word == "overhead") {
        out.retain(|word| word != "raw");
    }
    out
}

/// Values behind `diffserv`, `flowmode` and `atm` in tc's JSON.
fn is_value(word: &str) -> bool {
    let values = [
        "besteffort",
        "diffserv3",
        "diffserv4",
        "diffserv8",
        "precedence",
        "flowblind",
        "srchost",
        "dsthost",
        "hosts",
        "flows",
        "dual-srchost",
        "dual-dsthost",
        "triple-isolate",
        "noatm",
        "atm",
        "ptm",
    ];
    values.contains(&word)
}
