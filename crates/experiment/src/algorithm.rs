//! Congestion control algorithms as an experiment names them: built-in ones, and those of the user.

use crate::call::Call;
use crate::model::Flow;
use crate::quantity::{ValueError, fail, shown};
use crate::quic::{check_native, native};
use crate::rtp::{is_media, media_names};
use crate::suggest::{did_you_mean, unknown};
use dumbbell_cc::{Algorithm, ConfigError, ConnectionConfig, NAMES};
use dumbbell_units::Time;
use serde_json::Value;
use std::collections::BTreeSet;

/// Algorithms that need what only a UDT receiver reports.
const UDT_ONLY: [&str; 2] = ["udt", "ar-udt"];

/// What a flow without congestion control has instead of an algorithm.
pub(crate) const NO_ALGORITHM: &str = "none";

/// What precedes the name of an algorithm that only a kernel has, or the path of an eBPF object.
const LINUX: &str = "linux:";
/// The longest name of an algorithm in Linux, characters (TCP_CA_NAME_MAX, with the final zero).
const MAX_LINUX_NAME: usize = 15;

const WHAT: &str = "an algorithm";
/// How built-in algorithms are written.
pub(crate) const ALGORITHM_FORM: &str = "NAME or NAME(option=value, ...)";
const CUSTOM: &str =
    "write \"my_module:MyCC\", \"path/to/file.py:MyCC\" or \"my_module:MyCC(gain=2)\"";

/// An algorithm that is not built in: `my_module:MyCC(gain=2)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Custom {
    /// The module, or the file.
    pub home: String,
    /// The class.
    pub class: String,
    /// Its options and their values.
    pub options: Vec<(String, String)>,
}

impl Custom {
    /// Reads an algorithm's text; `None` if it names a built-in one.
    ///
    /// # Errors
    /// If the text is not of the form `home:Class` or `home:Class(option=value, ...)`.
    pub fn parse(text: &str) -> Option<Result<Custom, ValueError>> {
        let text = text.trim();
        if native(text).is_some() || of_linux(text).is_some() {
            return None;
        }
        let (head, options) = match text.strip_suffix(')').and_then(|text| text.rsplit_once('(')) {
            Some((head, options)) => (head.trim_end(), options),
            None => (text, ""),
        };
        let named = head.rsplit_once(':').filter(|(home, class)| {
            !home.trim().is_empty() && !class.is_empty() && class.chars().all(is_word)
        });
        let is_form = || text.split('(').next().is_some_and(|head| head.contains(':'));
        let form = || ValueError(format!("\"{text}\" is not an algorithm; {CUSTOM}"));
        let Some((home, class)) = named else { return is_form().then(|| Err(form())) };
        let options =
            read_options(options).ok_or_else(form).and_then(|options| match duplicate(&options) {
                Some(key) => fail!("\"{text}\" has the option {key} twice; write it once"),
                None => Ok(options),
            });
        let (home, class) = (home.trim().to_owned(), class.to_owned());
        Some(options.map(|options| Custom { home, class, options }))
    }
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

fn duplicate(options: &[(String, String)]) -> Option<&str> {
    let mut seen = BTreeSet::new();
    options.iter().map(|(key, _)| key.as_str()).find(|key| !seen.insert(*key))
}

fn read_options(text: &str) -> Option<Vec<(String, String)>> {
    let mut options: Vec<(String, String)> = Vec::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=')?;
        let (key, value) = (key.trim(), value.trim());
        let is_name = key.chars().all(is_word) && !key.starts_with(|c: char| c.is_numeric());
        if key.is_empty() || value.is_empty() || value.contains(')') || !is_name {
            return None;
        }
        options.push((key.to_owned(), value.to_owned()));
    }
    Some(options)
}

/// Checks an algorithm, a text or a table; returns its text. A custom one is not loaded.
///
/// # Errors
/// If no built-in algorithm has its name and options, or it has not the form of a custom one.
pub fn check(value: &Value) -> Result<String, ValueError> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        _ => Call::from_value(value, WHAT)?.to_string(),
    };
    if text == NO_ALGORITHM || is_media(&text) {
        return Ok(text);
    }
    if let Some((stack, name)) = native(&text) {
        return check_native(stack, name).map(|()| text);
    }
    if let Some(name) = of_linux(&text) {
        return check_linux(name).map(|()| text);
    }
    if let Some(custom) = Custom::parse(&text) {
        return custom.map(|_| text);
    }
    match Algorithm::parse(&text, &ConnectionConfig::new(Time::ZERO, 1448)) {
        Ok(_) => Ok(text),
        Err(ConfigError::UnknownAlgorithm { name }) if is_object(&name) => {
            fail!("no algorithm is called \"{name}\"; an eBPF object is written \"{LINUX}{name}\"")
        }
        Err(ConfigError::UnknownAlgorithm { name }) if name.ends_with(".py") => {
            fail!("\"{name}\" is a file; write \"{name}:CLASS\" with the class in it")
        }
        Err(ConfigError::UnknownAlgorithm { name })
            if name.contains(' ') && name.split(' ').all(|word| NAMES.contains(&word)) =>
        {
            let separate = name.replace(' ', ",");
            fail!("\"{name}\" is several algorithms; where several can be, write {separate}")
        }
        Err(ConfigError::UnknownAlgorithm { name }) => {
            let known: Vec<_> = NAMES.iter().copied().chain(media_names()).collect();
            Err(ValueError(unknown("algorithm", &name, &known)))
        }
        Err(ConfigError::UnknownOption { algorithm, key, valid }) => {
            let hint = did_you_mean(&key, valid.split(", "));
            fail!("{algorithm} has no option \"{key}\"{hint}; it has {valid}")
        }
        Err(ConfigError::Syntax { text }) => {
            Call::from_text(&text, WHAT)?;
            fail!("{} is not {WHAT}; write {ALGORITHM_FORM}", shown(&Value::from(text)))
        }
        Err(error) => Err(ValueError(error.to_string())),
    }
}

/// The kernel's name of an algorithm that runs only with real packets, or the path of its object:
/// what follows `linux:`.
pub fn of_linux(cc: &str) -> Option<&str> {
    cc.strip_prefix(LINUX)
}

/// Whether what follows `linux:` is a file, not a name that the kernel has.
pub(crate) fn is_object(name: &str) -> bool {
    name.ends_with(".o")
}

fn check_linux(name: &str) -> Result<(), ValueError> {
    let is_name = name.chars().all(|char| char.is_ascii_alphanumeric() || "_-".contains(char));
    if is_object(name) || (is_name && (1..=MAX_LINUX_NAME).contains(&name.len())) {
        return Ok(());
    }
    if name.ends_with(".c") {
        fail!(
            "\"{LINUX}{name}\" is a source; compile it with clang -O2 -g -target bpf -c, and write \
             the object, \"{LINUX}FILE.o\""
        )
    }
    if name.contains('(') {
        fail!("\"{LINUX}{name}\": the kernel's algorithms have no options by flow; leave them out")
    }
    fail!(
        "\"{LINUX}{name}\" is not {WHAT} of Linux; write \"{LINUX}NAME\" with the kernel's name of \
         it, at most {MAX_LINUX_NAME} letters, digits, \"_\" and \"-\", or \"{LINUX}FILE.o\" for an \
         eBPF object"
    )
}

/// Whether an algorithm has a source of the user: a class or an eBPF object.
pub(crate) fn is_custom(cc: &str) -> bool {
    cc.contains(':') && native(cc).is_none() && of_linux(cc).is_none_or(is_object)
}

/// Whether an algorithm needs what only a UDT receiver reports.
pub fn needs_udt(cc: &str) -> bool {
    UDT_ONLY.contains(&name_of(cc))
}

/// Whether an algorithm needs the number of marked packets, not only that there are some.
pub(crate) fn needs_marks(cc: &str) -> bool {
    ["dctcp", "prague"].contains(&name_of(cc))
}

fn name_of(cc: &str) -> &str {
    cc.split('(').next().unwrap_or_default().trim()
}

impl Flow {
    /// Whether it has the algorithm called `name`, with options or without.
    pub(crate) fn has_algorithm(&self, name: &str) -> bool {
        name_of(&self.cc) == name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn built_in_and_custom_algorithms_are_accepted() {
        for text in
            ["cubic", "cubic(slow_start=standard)", "a:B", "dir (x)/a.py:B (gain=2, fast=on)"]
        {
            assert_eq!(check(&json!(text)).as_deref(), Ok(text));
        }
        let table = json!({"name": "cubic", "slow_start": "standard"});
        assert_eq!(check(&table).as_deref(), Ok("cubic(slow_start=standard)"));
    }

    #[test]
    fn spaces_around_an_algorithm_are_no_part_of_it() {
        for text in ["none", "scream", "quinn:cubic", "linux:bbr", "a.py:B", "cubic"] {
            assert_eq!(check(&json!(format!(" {text} "))).as_deref(), Ok(text));
        }
    }

    #[test]
    fn an_unknown_algorithm_or_option_is_refused_with_a_close_one() {
        for (value, part) in [
            (json!("cubik"), "\"cubik\" (did you mean \"cubic\"?); choose from bbr,"),
            (
                json!("cubic(slow_strat=search)"),
                "no option \"slow_strat\" (did you mean \"slow_start\"?)",
            ),
            (json!("reno("), "\"reno(\" is not an algorithm: write NAME or"),
            (json!("reno(beta)"), "reno: \"beta\" is not of the form option=value"),
            (json!("reno(beta=0.5,beta=0.6)"), "reno: beta is given twice; write it once"),
            (json!("a:B(1=2)"), "is not an algorithm; write \"my_module:MyCC\""),
            (json!("a:B(x=1, y=2, x=3)"), "has the option x twice; write it once"),
            (json!("a:"), "is not an algorithm; write \"my_module:MyCC\""),
            (json!(7), "7 is not an algorithm"),
        ] {
            let error = check(&value).expect_err("not an algorithm").to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn the_algorithms_of_quic_stacks_are_no_files() {
        assert_eq!(check(&json!("noq:bbr3")).as_deref(), Ok("noq:bbr3"));
        assert_eq!(Custom::parse("quinn:cubic"), None);
        assert!(!is_custom("quinn:cubic") && is_custom("quin:cubic") && !is_custom("cubic"));
        let error = check(&json!("quinn:bbr3")).expect_err("noq's").to_string();
        let part = "did you mean \"bbr\"?); choose from quinn:cubic, quinn:reno, quinn:bbr,";
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn algorithms_of_linux_have_its_names_or_are_objects() {
        for (text, is_of_user) in
            [("linux:bbr", false), ("linux:my_cc-2", false), ("linux:dir (x)/mine.bpf.o", true)]
        {
            assert_eq!(check(&json!(text)).as_deref(), Ok(text));
            assert_eq!((Custom::parse(text), is_custom(text)), (None, is_of_user));
        }
        let form = "write \"linux:NAME\" with the kernel's name of it";
        for (text, part) in [
            ("linux:", form),
            ("linux:sixteen_letters_", form),
            ("linux:a b", form),
            ("linux:bbr(x=1)", "have no options by flow"),
            ("linux:mine.bpf.c", "is a source; compile it with clang"),
            ("mine.o", "an eBPF object is written \"linux:mine.o\""),
            ("mine.py", "write \"mine.py:CLASS\" with the class in it"),
            ("cubic bbr", "where several can be, write cubic,bbr"),
        ] {
            let error = check(&json!(text)).expect_err("no such name").to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_custom_algorithm_has_a_home_a_class_and_options() {
        let custom = Custom::parse("dir/a.py:B(gain=2)").expect("custom").expect("valid");
        assert_eq!((custom.home.as_str(), custom.class.as_str()), ("dir/a.py", "B"));
        assert_eq!(custom.options, [("gain".to_owned(), "2".to_owned())]);
        assert_eq!(Custom::parse("cubic(beta=0.5)"), None);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,20}", call in "[a-z:(),= ]{0,20}") {
            let _ = (check(&json!(text)), check(&json!(call)));
        }
    }
}
