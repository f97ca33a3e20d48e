//! Failures of the analysis as failures of commands.

use classyard_analysis::AnalysisError;
use classyard_report::failure::Failure;

/// Converts an error of the analysis.
pub(super) fn failure(error: AnalysisError) -> Failure {
    match error {
        AnalysisError::Build(error) => error.into(),
        error @ AnalysisError::Schemas { .. } => Failure::usage(error.to_string())
            .with_help("`--schema dual-5tuple` reads IPv4 and IPv6 rules as one policy"),
        error => Failure::usage(error.to_string()),
    }
}
