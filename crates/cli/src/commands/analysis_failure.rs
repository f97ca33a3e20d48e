//! Failures of the analysis as failures of commands.

use classyard_analysis::AnalysisError;
use classyard_report::failure::Failure;

/// Converts an error of the analysis.
pub(super) fn failure(error: AnalysisError) -> Failure {
    match error {
        AnalysisError::Build(error) => error.into(),
        error => Failure::usage(error.to_string()),
    }
}
