#pragma once

#include <map>
#include <string>

#include "study/jobs/job/msjob/msjob.hpp"
#include "study/jobs/job/msjob/yaml_value.hpp"

namespace hcclsim::study {

/// A pod template as the API server of Kubernetes accepts it. Throws Error(bad_input, "msjob") with file, line and
/// path.
[[nodiscard]] PodTemplate read_pod_template(const YamlValue& value);

/// A map of amounts by name of the resource.
[[nodiscard]] Resources read_resources(const YamlValue& value);

/// A map of texts: labels, annotations.
[[nodiscard]] std::map<std::string, std::string> read_texts(const YamlValue& value);

/// Lower-case letters, digits and '-', as Kubernetes names things (RFC 1123), at most 63 characters.
void require_label_name(const YamlValue& value, const std::string& name);

}  // namespace hcclsim::study
