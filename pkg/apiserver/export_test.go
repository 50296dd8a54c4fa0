package apiserver

// ListedPaths are the paths that the generic server has handlers for.
func (s *Server) ListedPaths() []string { return s.generic.Handler.ListedPaths() }
