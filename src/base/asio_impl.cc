// Asio and its TLS part are compiled here once; every other file only declares them.
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
