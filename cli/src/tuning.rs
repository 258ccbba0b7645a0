//! What a command line changes in how connections work: congestion control and schemes' parameters.

use std::str::FromStr;

use clap::Args;
use spray_core::cc::{CcKind, CcSchemes};
use spray_core::path::Schemes;
use spray_experiments::scenario::{Transport, set_param};

use crate::failure::{Failure, Outcome};

/// Congestion control and parameters, in place of a scenario's own.
#[derive(Clone, Debug, Default, Args)]
pub struct Tuning {
    /// Congestion control, instead of the scenario's
    #[arg(long, value_name = "NAME")]
    pub cc: Option<CcKind>,
    #[command(flatten)]
    pub params: Params,
}

/// Parameters of schemes by name.
#[derive(Clone, Debug, Default, Args)]
pub struct Params {
    /// Sets a parameter of a balancer or congestion control, as in `flowcut.rtt_ratio=4`; without a scheme's name that of
    /// the congestion control; may be repeated. docs/scenario.md lists them
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<Assignment>,
}

/// A parameter's name and its value as text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Assignment {
    name: String,
    value: String,
}

impl FromStr for Assignment {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty());
        let (name, value) = parts.ok_or("expected NAME=VALUE, such as flowcut.rtt_ratio=4")?;
        Ok(Self { name: name.into(), value: value.into() })
    }
}

impl Tuning {
    /// Changes `transport`.
    ///
    /// # Errors
    /// 2 for parameters that there are not, and for values that they do not take.
    pub fn apply(&self, transport: &mut Transport) -> Outcome {
        transport.cc = self.cc.unwrap_or(transport.cc);
        self.params.apply(transport)
    }
}

impl Params {
    /// Changes `transport`.
    ///
    /// # Errors
    /// As [`Tuning::apply`].
    pub fn apply(&self, transport: &mut Transport) -> Outcome {
        let cc = transport.cc;
        self.set(cc, &mut transport.schemes, &mut transport.cc_schemes)
    }

    /// Changes the settings of balancers and of congestion controls, `cc` being the chosen one.
    ///
    /// # Errors
    /// As [`Tuning::apply`].
    pub fn set(&self, cc: CcKind, schemes: &mut Schemes, cc_schemes: &mut CcSchemes) -> Outcome {
        self.params.iter().try_for_each(|Assignment { name, value }| {
            let wrong = |mistake| Failure::refused(format!("--param {name}={value}: {mistake}"));
            set_param(schemes, cc_schemes, cc, name, value).map_err(wrong)
        })
    }
}
