//! Queues of the kernel modules of Sojourn (`kernel/modules`), of which `tc` knows nothing but the name.

use sojourn_net::{Bytes, Rate};

use crate::parameters::{LinkFacts, Parameter, ParameterError, Unit};
use crate::parts::fixed::millionths;
use crate::parts::shadow::sample_for;
use crate::registry::QdiscSpec;

/// The value of a parameter that is not set.
const UNSET: u64 = u64::MAX;
/// The largest packet of Ethernet, with its header.
const MTU: Bytes = Bytes(1_514);

/// A queue of a kernel module, as the kernel makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleQueue {
    /// What `tc qdisc add` calls it.
    pub name: &'static str,
    /// The module.
    pub module: &'static str,
    /// The parameters of the module with which a new queue begins: files in `/sys/module/MODULE/parameters`. Times are
    /// in nanoseconds, rates in bits per second, sizes in bytes, and fractions in millionths.
    pub parameters: Vec<(String, u64)>,
}

/// A queue that a module has.
struct Source {
    page: &'static str,
    name: &'static str,
    module: &'static str,
    /// What the names of its parameters begin with.
    prefix: &'static str,
    /// Parameters that it does not have, and the value that it acts on; "": any.
    lacks: &'static [(&'static str, &'static str)],
}

const MODULES: &[Source] = &[
    Source {
        page: "cocoa",
        name: "cocoa",
        module: "sch_cocoa",
        prefix: "",
        lacks: &[("pacing", "off"), ("profile", "paper")],
    },
    Source {
        page: "afcd",
        name: "afcd",
        module: "sch_afcd",
        prefix: "",
        lacks: &[],
    },
    Source {
        page: "afd",
        name: "afq",
        module: "sch_afcd",
        prefix: "afq_",
        lacks: &[("random", "off"), ("accumulate", "off"), ("tupdate", "")],
    },
    Source {
        page: "floq",
        name: "floq",
        module: "sch_floq",
        prefix: "",
        lacks: &[],
    },
    Source {
        page: "predict",
        name: "predict",
        module: "sch_predict",
        prefix: "",
        lacks: &[("compact", "off")],
    },
];

impl QdiscSpec {
    /// This queue on a link of this rate, as a kernel module makes it; `None`: no module has it.
    ///
    /// A module has the arithmetic of the profile `kernel`, also if that of this queue is `paper`.
    ///
    /// # Errors
    /// If the module does not have one of the parameters.
    pub fn module_queue(&self, rate: Rate) -> Option<Result<ModuleQueue, ParameterError>> {
        let page = self.entry()?.0.page?;
        let module = MODULES.iter().find(|module| module.page == page)?;
        Some(self.of_module(module, rate))
    }

    fn of_module(&self, module: &Source, rate: Rate) -> Result<ModuleQueue, ParameterError> {
        let mut values = self.clone();
        values.resolve(&LinkFacts {
            rate: Some(rate),
            mtu: MTU,
            name: None,
            flows: None,
        });
        let entry = values.entry().map(|(entry, _)| entry);
        let mut parameters = Vec::new();
        for parameter in entry.iter().flat_map(|entry| entry.parameters) {
            let key = parameter.key;
            let text = values.value(key).and_then(|value| parameter.text(value));
            let lacked = module.lacks.iter().find(|(lacked, _)| *lacked == key);
            match (lacked, &text) {
                (None, _) => {}
                (Some((_, only)), Some(text)) if !only.is_empty() && text != only => {
                    return Err(ParameterError::Conflict {
                        kind: self.kind(),
                        why: format!("the kernel module has no {}", shown(parameter, text)),
                    });
                }
                _ => continue,
            }
            let whole = values.value(key).and_then(|value| value.whole());
            let number = match (parameter.unit, text) {
                (Unit::Profile, _) => continue,
                // These follow the link.
                (Unit::Rate, None) => rate.bits_per_sec(),
                (_, None) if key == "sample" => {
                    let shadow = values.value("shadow").and_then(|value| value.whole());
                    let shadow = shadow.and_then(|shadow| shadow.try_into().ok());
                    sample_for(Some(rate), shadow.unwrap_or(u32::MAX)).into()
                }
                (_, None) => UNSET,
                (Unit::Fraction | Unit::Weight, Some(text)) => {
                    millionths(text.parse().unwrap_or_default())
                }
                _ => whole.unwrap_or(UNSET),
            };
            parameters.push((format!("{}{key}", module.prefix), number));
        }
        Ok(ModuleQueue {
            name: module.name,
            module: module.module,
            parameters,
        })
    }
}

/// What an error calls a value.
fn shown(parameter: &Parameter, text: &str) -> String {
    if parameter.is_flag() {
        return parameter.key.to_owned();
    }
    format!("{} {text}", parameter.key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn queue(text: &str) -> Result<ModuleQueue, ParameterError> {
        let spec: QdiscSpec = text.parse().expect(text);
        spec.module_queue(Rate::mbit(10)).expect("a module has it")
    }

    fn value(queue: &ModuleQueue, name: &str) -> Option<u64> {
        let mut all = queue.parameters.iter();
        all.find_map(|(known, value)| (known == name).then_some(*value))
    }

    #[test]
    fn values_are_in_the_units_of_the_module() {
        let cocoa = queue("cocoa flow_limit 50 guard_interval 1.5 refill_delay 3ms").unwrap();
        assert_eq!((cocoa.name, cocoa.module), ("cocoa", "sch_cocoa"));
        assert_eq!(value(&cocoa, "flow_limit"), Some(50));
        assert_eq!(value(&cocoa, "guard_interval"), Some(1_500_000));
        assert_eq!(value(&cocoa, "refill_delay"), Some(3_000_000));
        assert_eq!(value(&cocoa, "pacing"), None);
        let floq = queue("floq").unwrap();
        assert_eq!(value(&floq, "resume"), Some(UNSET));
        assert_eq!(value(&floq, "quic"), Some(1));
        let predict = queue("predict").unwrap();
        assert_eq!(value(&predict, "bandwidth"), Some(10_000_000));
        let afq = queue("afq ecn").unwrap();
        assert_eq!((afq.name, afq.module), ("afq", "sch_afcd"));
        assert_eq!(value(&afq, "afq_tolerance"), Some(1_200_000));
        // 1.2 s of the link in 2000 samples.
        assert_eq!(value(&afq, "afq_sample"), Some(1));
    }

    #[test]
    fn what_a_module_does_not_have_is_refused() {
        let refusal = |text| queue(text).unwrap_err().to_string();
        assert_eq!(
            refusal("cocoa pacing"),
            "cocoa: the kernel module has no pacing"
        );
        assert_eq!(
            refusal("cocoa profile linux"),
            "cocoa: the kernel module has no profile linux"
        );
        assert_eq!(refusal("afd"), "afd: the kernel module has no random");
        let codel: QdiscSpec = "codel".parse().unwrap();
        assert!(codel.module_queue(Rate::mbit(10)).is_none());
    }

    /// The names are those of the modules: a name that the kernel does not have would fail in the guest only.
    #[test]
    fn modules_have_these_parameters() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel/modules");
        for module in MODULES {
            let file = format!("{folder}/{}.c", module.module);
            let Ok(source) = fs::read_to_string(&file) else {
                // The sources of a crate alone do not have them.
                return;
            };
            let made = match module.page {
                "afd" => queue("afq"),
                kind => queue(kind),
            };
            for (name, _) in made.expect(module.page).parameters {
                let declared = format!("module_param_named({name},");
                assert!(source.contains(&declared), "{file}: {name}");
            }
        }
    }
}
