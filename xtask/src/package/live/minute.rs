//! The section of docs/install.md that leads from the package to a connected subscriber.
//!
//! The test does what the section prints and nothing else: it writes the files whose names follow the fence, and runs
//! the lines that start with `$ `, in order, as root in the directory of the package.

use std::fs;
use std::path::Path;
use std::time::Instant;

use super::{Machine, at, ensure, until};

const PAGE: &str = "docs/install.md";
const SECTION: &str = "## From nothing to a subscriber in a minute";

/// What the section asks a reader to do.
#[derive(Debug, PartialEq)]
enum Step {
    Write { file: String, text: String },
    Run(String),
}

/// Does every step, and returns how long that took.
pub(super) fn test(machine: &Machine, repository: &Path) -> Result<String, String> {
    let page = repository.join(PAGE);
    let text = fs::read_to_string(&page).map_err(at(&page))?;
    let steps = steps(&text);
    let commands = steps.iter().filter(|step| matches!(step, Step::Run(_)));
    let count = commands.count();
    ensure(count > 0, || format!("{PAGE}: no command in {SECTION:?}"))?;
    let start = Instant::now();
    for step in &steps {
        take(machine, step)?;
    }
    let took = start.elapsed();
    let shown = machine.run("headend show subscribers --json")?;
    ensure(shown.contains("\"state\":\"up\""), || {
        format!("no subscriber is connected: {shown}")
    })?;
    Ok(format!(
        "{count} commands of {PAGE}: {:.1} s",
        took.as_secs_f64()
    ))
}

fn take(machine: &Machine, step: &Step) -> Result<(), String> {
    match step {
        Step::Write { file, text } => {
            let place = match file.strip_prefix('/') {
                Some(file) => machine.root.join(file),
                None => machine.root.join("root").join(file),
            };
            fs::write(&place, text).map_err(at(&place))
        }
        Step::Run(command) if command.ends_with('&') => {
            let log = machine.root.join("root/background.log");
            let command = command.trim_end_matches('&');
            machine.run(&format!("{command} </dev/null >background.log 2>&1 &"))?;
            // A person needs longer for the next line than the program until it logs its first one.
            until("log of a background command", || {
                let text = fs::read_to_string(&log).unwrap_or_default();
                Ok((!text.is_empty()).then_some(()))
            })
        }
        Step::Run(command) => machine.run(command).map(drop),
    }
}

/// The files and commands of the section.
fn steps(page: &str) -> Vec<Step> {
    let mut lines = page.lines().skip_while(|line| *line != SECTION).skip(1);
    let mut steps = Vec::new();
    while let Some(line) = lines.next() {
        if line.starts_with("## ") {
            break;
        }
        let Some(fence) = line.strip_prefix("```") else {
            continue;
        };
        let block: Vec<&str> = lines
            .by_ref()
            .take_while(|line| !line.starts_with("```"))
            .collect();
        match fence.split_once(' ') {
            Some((_, file)) => steps.push(Step::Write {
                file: file.to_owned(),
                text: block.join("\n") + "\n",
            }),
            None => {
                let commands = block.iter().filter_map(|line| line.strip_prefix("$ "));
                steps.extend(commands.map(|command| Step::Run(command.to_owned())));
            }
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_commands_of_the_section_are_found_in_order() {
        let page = format!(
            "# P\n```\n$ before\n```\n{SECTION}\nText\n```\n$ apt x\n```\n```toml a.toml\nkey = 1\n```\n\
             ```\n$ one &\nwhat it prints\n$ two\n```\n## Next\n```\n$ after\n```\n"
        );
        let run = |command: &str| Step::Run(command.to_owned());
        let write = Step::Write {
            file: "a.toml".to_owned(),
            text: "key = 1\n".to_owned(),
        };
        assert_eq!(
            steps(&page),
            [run("apt x"), write, run("one &"), run("two")]
        );
        assert_eq!(steps("# A page without it\n```\n$ x\n```\n"), []);
    }
}
