//! Configurations of clouds: AWS and Kubernetes.

mod aws;
mod aws_random;
mod documents;
mod helper;
mod kubernetes;
mod kubernetes_faults;
mod kubernetes_random;
