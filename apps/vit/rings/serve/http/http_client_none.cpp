#include "apps/vit/rings/serve/http/http_client.h"
#include "vit/base/check.h"

namespace vit::app {

HttpResponse post(const HttpTarget& target, const std::string& /*path*/, const std::string& /*content_type*/,
                  std::string /*body*/, const HttpClientLimits& /*limits*/) {
  fail(Where{"upstream", ErrorKind::unsupported}, target.host, ": vit was built without Boost.Beast");
}

}  // namespace vit::app
